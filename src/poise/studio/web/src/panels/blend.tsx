/** Blend sliders: several styles at once, by weight. */
import type { JSX } from "preact";
import * as state from "../state";
import { blend } from "../studio";
import { Section, Slider } from "./ui";

export function Blend(): JSX.Element | null {
  const styles = state.models.value.filter((model) => model.kind === "style");
  if (styles.length < 2) return null;
  const weights = new Map((state.scene.value?.weights ?? []).map(({ model, weight }) => [model, weight]));
  if (!weights.size && state.model.value?.kind === "style") weights.set(state.model.value.id, 1);
  const set = (id: string, weight: number): void => {
    const next = new Map(weights).set(id, weight);
    const wanted = [...next].filter(([, share]) => share > 0).map(([model, share]) => ({ model, weight: share }));
    if (wanted.length) blend(wanted);
  };
  return (
    <Section title="Blend styles" closed={state.model.value?.kind !== "blend"}>
      {styles.map((style) => (
        <Slider
          key={style.id}
          label={style.name}
          value={weights.get(style.id) ?? 0}
          onMove={(weight) => set(style.id, weight)}
          words={`${Math.round((weights.get(style.id) ?? 0) * 100)} %`}
        />
      ))}
    </Section>
  );
}
