/** The shapes of the hands: with the pose they are keyed. */
import type { JSX } from "preact";
import type { Hands } from "../messages";
import * as state from "../state";
import { setHands } from "../studio";
import { Section, Segmented } from "./ui";

type Side = keyof Hands;
type Shape = keyof Hands["left"];

const SHAPES: readonly { value: Shape; label: string }[] = [
  { value: "relaxed", label: "Relaxed" },
  { value: "fist", label: "Fist" },
  { value: "flat", label: "Flat" },
  { value: "point", label: "Point" },
];

export function HandsSection(): JSX.Element | null {
  const sides = (["left", "right"] as const).filter((side) =>
    state.body.value?.joints.some(({ role }) => role === `${side}_hand`),
  );
  if (!sides.length) return null;
  return (
    <Section title="Hands">
      {sides.map((side) => (
        <div class="hand" key={side}>
          <span class="quiet">{side}</span>
          <Segmented
            label={`Shape of the ${side} hand`}
            choices={SHAPES}
            value={shapeOf(side)}
            onChoose={(shape) => choose(side, shape)}
          />
        </div>
      ))}
    </Section>
  );
}

/** The shape that a hand mostly has. */
function shapeOf(side: Side): Shape | null {
  const shares = state.scene.value?.hands[side] ?? {};
  const found = SHAPES.find(({ value }) => (shares[value] ?? 0) > 0.5)?.value;
  const body = state.body.value;
  return found ?? (body && body.placed > body.joints.length ? "relaxed" : null);
}

/** Takes a shape; again, and the fingers are as the body or the recording has them. */
function choose(side: Side, shape: Shape): void {
  const hands = state.scene.value?.hands;
  if (hands) setHands({ ...hands, [side]: shapeOf(side) === shape ? {} : { [shape]: 1 } });
}
