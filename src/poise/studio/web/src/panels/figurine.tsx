/** A pose as a small figure of lines, seen from before or from the left. */
import type { JSX } from "preact";
import { type Vec2, jointPosition } from "../arrays";
import * as state from "../state";
import { palette } from "../theme";
import { useCanvas } from "./ui";

export function Figurine({ world, from }: { world: Float32Array; from: "front" | "left" }): JSX.Element {
  const joints = state.body.value?.joints ?? [];
  const canvas = useCanvas((pen, width, height) => {
    const at = (joint: number): Vec2 => pixel(world, joint, width, height, from);
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

/** From the left, what is in front of the body lies to the left of the picture. */
function pixel(world: Float32Array, joint: number, width: number, height: number, from: "front" | "left"): Vec2 {
  const root = jointPosition(world, 0);
  const [x, y, z] = jointPosition(world, joint);
  const scale = height / 2.3;
  const across = from === "front" ? x - root[0] : root[2] - z;
  return [width / 2 + across * scale, height / 2 - (y - root[1]) * scale];
}
