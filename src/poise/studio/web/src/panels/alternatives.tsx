/** Other poses that explain the photo as well: small figures to look at from the side and to choose from. */
import type { JSX } from "preact";
import { type Vec2, jointPosition } from "../arrays";
import * as state from "../state";
import { say } from "../studio";
import { palette } from "../theme";
import { Section, useCanvas } from "./ui";

export function Alternatives(): JSX.Element | null {
  const found = state.alternatives.value;
  if (found.length < 2) return null;
  return (
    <Section title="Poses that fit" aside={<span class="quiet">{found.length}</span>}>
      <p class="empty">A photo does not tell depth. Seen from the left:</p>
      <div class="alternatives">
        {found.map((world, number) => (
          <button
            type="button"
            key={number}
            aria-label={`Take pose ${number + 1}`}
            onPointerEnter={() => (state.offered.value = world)}
            onPointerLeave={() => (state.offered.value = null)}
            onClick={() => say({ type: "chooseAlternative", number })}
          >
            <SideView world={world} />
          </button>
        ))}
      </div>
    </Section>
  );
}

function SideView({ world }: { world: Float32Array }): JSX.Element {
  const joints = state.body.value?.joints ?? [];
  const canvas = useCanvas((pen, width, height) => {
    const at = (joint: number): Vec2 => sidePixel(world, joint, width, height);
    pen.lineCap = "round";
    pen.lineWidth = 2.5;
    joints.forEach((joint, number) => {
      if (joint.parent < 0) return;
      const tones = palette.value.tones;
      pen.strokeStyle = joint.role?.startsWith("left")
        ? tones[2]!
        : joint.role?.startsWith("right")
          ? tones[4]!
          : palette.value.quiet;
      pen.beginPath();
      pen.moveTo(...at(joint.parent));
      pen.lineTo(...at(number));
      pen.stroke();
    });
  });
  void palette.value;
  return <canvas ref={canvas} />;
}

/** From the left: what is in front of the body lies to the left of the picture. */
function sidePixel(world: Float32Array, joint: number, width: number, height: number): Vec2 {
  const root = jointPosition(world, 0);
  const [, y, z] = jointPosition(world, joint);
  const scale = height / 2.3;
  return [width / 2 - (z - root[2]) * scale, height / 2 - (y - root[1]) * scale];
}
