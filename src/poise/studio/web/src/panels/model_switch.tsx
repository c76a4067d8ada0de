/** The model switch: the same handles under a model for another use, with the previous result as a ghost. */
import type { JSX } from "preact";
import type { Model } from "../messages";
import * as state from "../state";
import { chooseModel } from "../studio";

type Kind = Model["kind"];

interface Use {
  readonly kinds: readonly Kind[];
  readonly label: string;
  readonly hint: string;
}

/** What models are for; the hint says what they are. */
const USES: readonly Use[] = [
  { kinds: ["universal"], label: "General", hint: "The universal prior, learned from many people" },
  { kinds: ["style"], label: "One action", hint: "One performer's way of doing one thing: style IK (Grochow et al.)" },
  {
    kinds: ["gaussian", "local"],
    label: "From recordings",
    hint: "All recordings at once: Gaussian clusters (Huang et al.), or the nearest poses (local models, Chai and Hodgins)",
  },
  { kinds: ["dynamics"], label: "In time", hint: "Poses in sequence: dynamics model (Urtasun et al.)" },
  { kinds: ["blend"], label: "Blend", hint: "Several models at once" },
  { kinds: ["plain"], label: "Plain IK", hint: "No model: the nearest pose that meets the handles" },
];

/** The model of each use that was used last, so that switching back finds it again. */
const lastOfUse = new Map<string, string>();

export function ModelSwitch(): JSX.Element {
  const current = state.model.value;
  const uses = [...USES, ...others()];
  const use = uses.find(({ kinds }) => current && kinds.includes(current.kind));
  if (current && use) lastOfUse.set(use.label, current.id);
  const alike = use ? modelsFor(use) : [];
  return (
    <div class="model-switch float" role="group" aria-label="Model">
      <div class="segmented" role="group" aria-label="Kind of model">
        {uses
          .filter(({ kinds }) => !kinds.includes("blend") || current?.kind === "blend")
          .map((each) => (
            <UseButton key={each.label} use={each} chosen={each === use} />
          ))}
      </div>
      {alike.length > 1 && current && (
        <select
          aria-label="Which model"
          title={`${current.name}: ${current.summary}`}
          value={current.id}
          onChange={(event) => chooseModel(event.currentTarget.value)}
        >
          {alike.map((model) => (
            <option key={model.id} value={model.id}>
              {model.name}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}

/** Kinds of models that plugins bring, once there is one. */
function others(): Use[] {
  const known = new Set(USES.flatMap(({ kinds }) => kinds));
  return state.learnable.value
    .filter(({ kind }) => !known.has(kind) && state.models.value.some((model) => model.kind === kind))
    .map(({ kind, about }) => ({ kinds: [kind], label: titled(kind), hint: titled(about) }));
}

const titled = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

const modelsFor = ({ kinds }: Use): readonly Model[] => state.models.value.filter(({ kind }) => kinds.includes(kind));

function UseButton({ use, chosen }: { use: Use; chosen: boolean }): JSX.Element {
  const models = modelsFor(use);
  const choose = (): void => {
    const known = models.find((model) => model.id === lastOfUse.get(use.label)) ?? models[0];
    if (known && !chosen) chooseModel(known.id);
  };
  return (
    <button
      type="button"
      aria-pressed={chosen}
      disabled={!models.length}
      title={models.length ? use.hint : `${use.hint}. There is none yet: learn one.`}
      onClick={choose}
    >
      {use.label}
    </button>
  );
}
