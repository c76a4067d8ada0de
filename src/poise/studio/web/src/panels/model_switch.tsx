/** The prior switch: the same handles under another model, with the previous result as a ghost. */
import type { JSX } from "preact";
import type { Model } from "../messages";
import * as state from "../state";
import { chooseModel } from "../studio";

type Kind = Model["kind"];

const KINDS: readonly { readonly kind: Kind; readonly label: string; readonly hint: string }[] = [
  { kind: "style", label: "Style", hint: "One performer's way of doing one thing" },
  { kind: "gaussian", label: "Gaussian", hint: "Poses as clusters; quick and steady" },
  { kind: "local", label: "Local", hint: "A model made of the nearest recorded poses" },
  { kind: "dynamics", label: "Dynamics", hint: "How poses follow one another" },
  { kind: "blend", label: "Blend", hint: "Several styles at once" },
  { kind: "plain", label: "Plain IK", hint: "No model: the nearest pose that meets the handles" },
];

/** The model of each kind that was used last, so that switching back finds it again. */
const lastOfKind = new Map<Kind, string>();

export function ModelSwitch(): JSX.Element {
  const current = state.model.value;
  if (current) lastOfKind.set(current.kind, current.id);
  const ofKind = state.models.value.filter((model) => model.kind === current?.kind);
  return (
    <div class="model-switch float" role="group" aria-label="Model">
      <div class="segmented" role="group" aria-label="Kind of model">
        {[...KINDS, ...others()]
          .filter(({ kind }) => kind !== "blend" || current?.kind === "blend")
          .map((choice) => (
            <KindButton key={choice.kind} {...choice} />
          ))}
      </div>
      {ofKind.length > 1 && current && (
        <select
          aria-label="Which model"
          value={current.id}
          onChange={(event) => chooseModel(event.currentTarget.value)}
        >
          {ofKind.map((model) => (
            <option key={model.id} value={model.id}>
              {model.name}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}

/** Kinds of models that plugins bring. */
function others(): (typeof KINDS)[number][] {
  const known = new Set(KINDS.map(({ kind }) => kind));
  return state.learnable.value
    .filter(({ kind }) => !known.has(kind))
    .map(({ kind, about }) => ({ kind, label: titled(kind), hint: titled(about) }));
}

const titled = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

function KindButton({ kind, label, hint }: (typeof KINDS)[number]): JSX.Element {
  const models = state.models.value.filter((model) => model.kind === kind);
  const chosen = state.model.value?.kind === kind;
  const choose = (): void => {
    const known = models.find((model) => model.id === lastOfKind.get(kind)) ?? models[0];
    if (known && !chosen) chooseModel(known.id);
  };
  return (
    <button
      type="button"
      aria-pressed={chosen}
      disabled={!models.length}
      title={models.length ? hint : `${hint}. There is none yet: learn one.`}
      onClick={choose}
    >
      {label}
    </button>
  );
}
