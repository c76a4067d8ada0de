/** The pose panel: handles, the floor, the style's space. */
import type { JSX } from "preact";
import type { Scene } from "../messages";
import * as state from "../state";
import { setFeet } from "../studio";
import { Blend } from "./blend";
import { HandleList } from "./handle_list";
import { StyleSpace } from "./style_space";
import { Section, Segmented } from "./ui";

const FEET: readonly { value: Scene["feet"]; label: string; hint: string }[] = [
  { value: "planted", label: "Planted", hint: "Feet stay where they are" },
  { value: "above", label: "Above floor", hint: "Feet go anywhere but below the floor" },
  { value: "free", label: "Free", hint: "The floor counts for nothing" },
];

export function PosePanel(): JSX.Element {
  return (
    <>
      <StyleSpace />
      <Blend />
      <HandleList />
      <Section title="Feet">
        <Segmented label="Feet" choices={FEET} value={state.scene.value?.feet ?? null} onChoose={setFeet} />
      </Section>
    </>
  );
}
