/** The pose panel: handles, the floor, the style's space. */
import type { JSX } from "preact";
import type { Bearing, Scene } from "../messages";
import * as state from "../state";
import { setBearing, setFeet } from "../studio";
import { Blend } from "./blend";
import { Constraints } from "./constraints";
import { HandsSection } from "./hands";
import { HandleList } from "./handle_list";
import { Library } from "./library";
import { PropsSection } from "./props";
import { StyleSpace } from "./style_space";
import { Section, Segmented, Toggle } from "./ui";

const FEET: readonly { value: Scene["feet"]; label: string; hint: string }[] = [
  { value: "planted", label: "Planted", hint: "Feet stay where they are" },
  { value: "above", label: "Above floor", hint: "Feet move freely above the floor" },
  { value: "free", label: "Free", hint: "No floor" },
];

const BEARING: readonly { of: keyof Bearing; label: string; hint: string }[] = [
  { of: "heading", label: "Keep facing this way", hint: "Hips turn only if a handle or the gaze turns them" },
  { of: "balance", label: "Keep the balance", hint: "The weight stays over feet, knees, hands and seat that carry it" },
  { of: "arms", label: "Let idle arms hang", hint: "Arms without a handle hang down if the model allows it" },
  { of: "apart", label: "Keep limbs apart", hint: "Arms and legs do not intersect the body or each other" },
  { of: "step", label: "Step where needed", hint: "A planted foot steps when a hand is dragged out of reach" },
];

export function PosePanel(): JSX.Element {
  return (
    <>
      <StyleSpace />
      <Blend />
      <HandleList />
      <HandsSection />
      <Library />
      <PropsSection />
      <Section title="Feet">
        <Segmented label="Feet" choices={FEET} value={state.scene.value?.feet ?? null} onChoose={setFeet} />
      </Section>
      <Section title="Body">
        {BEARING.map(({ of, label, hint }) => (
          <BearingSwitch key={of} of={of} label={label} hint={hint} />
        ))}
      </Section>
      <Constraints />
    </>
  );
}

function BearingSwitch({ of, label, hint }: (typeof BEARING)[number]): JSX.Element | null {
  const bearing = state.scene.value?.bearing;
  if (!bearing) return null;
  return <Toggle label={label} hint={hint} on={bearing[of]} onChange={(on) => setBearing({ ...bearing, [of]: on })} />;
}
