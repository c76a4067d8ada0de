/** Learn: motions in, a model out, used at once. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Download, FilePlus2, GraduationCap, Pencil, X } from "lucide-preact";
import type { Learn, Model } from "../messages";
import * as state from "../state";
import { say } from "../studio";
import { palette } from "../theme";
import { upload } from "../upload";
import { Button, IconButton, PickFiles, Section, Segmented, useCanvas } from "./ui";

const STEEP = 0.12; // of the curve, its steep beginning, is cut off so that the rest can be seen

const chosen = signal<readonly File[]>([]);
const busy = signal(false);

const KINDS: readonly { value: Learn["kind"]; label: string; hint: string }[] = [
  { value: "style", label: "One action", hint: "A style, with a space to explore; best from one or two clips" },
  { value: "gaussian", label: "All poses", hint: "Gaussian clusters of poses; quick, for any amount of motion" },
  { value: "local", label: "Nearest", hint: "Local models of the recorded poses; live performance follows them" },
  {
    value: "dynamics",
    label: "In time",
    hint: "A dynamics model of how poses follow one another; from one cyclic motion",
  },
  { value: "auto", label: "Auto", hint: "Your clips, and people in general for what they do not show" },
  { value: "universal", label: "General", hint: "People in general, calibrated to the joints of your performer" },
];

/** Our own kinds in our own words, then those that plugins bring. */
function choices(): typeof KINDS {
  const known = new Set(KINDS.map(({ value }) => value));
  const others = state.learnable.value.filter(({ kind }) => !known.has(kind));
  return [...KINDS, ...others.map(({ kind, about }) => ({ value: kind, label: kind, hint: about }))];
}

export function addToLearn(files: readonly File[]): void {
  const names = new Set(chosen.value.map((file) => file.name));
  chosen.value = [...chosen.value, ...files.filter((file) => !names.has(file.name))];
}

export function LearnPanel(): JSX.Element {
  const [kind, setKind] = useState<Learn["kind"]>("style");
  const [name, setName] = useState("");
  const learning = [...state.progress.value.values()].find((step) => step.task === "learn");
  const title = name.trim() || (chosen.value[0]?.name.replace(/\.[^.]+$/, "") ?? "");
  return (
    <>
      <Section title="Learn from motions">
        <p class="empty">Drop BVH, AMC (with its ASF) or C3D files here. One clip is enough; it takes seconds.</p>
        <PickFiles
          label="Choose files"
          icon={FilePlus2}
          several
          accept={[...state.motionFiles.value, ...state.takeFiles.value].join(",")}
          onFiles={addToLearn}
        />
        <ul class="file-list">
          {chosen.value.map((file) => (
            <li key={file.name}>
              <span>{file.name}</span>
              <button
                type="button"
                class="icon-button"
                aria-label={`Leave out ${file.name}`}
                onClick={() => (chosen.value = chosen.value.filter((other) => other !== file))}
              >
                <X size={14} aria-hidden="true" />
              </button>
            </li>
          ))}
        </ul>
        <Segmented label="Kind of model" choices={choices()} value={kind} onChoose={setKind} />
        <p class="quiet">{choices().find(({ value }) => value === kind)?.hint}.</p>
        <label class="field">
          Name
          <input
            class="text"
            value={name}
            placeholder={title || "of the model"}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <Button
          label="Learn and use"
          kind="primary"
          icon={GraduationCap}
          disabled={!chosen.value.length || busy.value || !!learning}
          onPress={() => void learn(title, kind)}
        />
        {learning && (
          <div class="learning" role="status">
            <progress max={1} value={learning.share} aria-label={learning.words} />
            <span>{learning.words}</span>
          </div>
        )}
        {state.learningCurve.value.length > 1 && <Curve values={state.learningCurve.value} />}
      </Section>
      <ModelList />
    </>
  );
}

async function learn(name: string, kind: Learn["kind"]): Promise<void> {
  busy.value = true;
  state.learningCurve.value = [];
  const uploads = await Promise.all(chosen.value.map(upload));
  busy.value = false;
  if (uploads.every((id) => id !== null)) say({ type: "learn", name, kind, uploads });
}

function Curve({ values }: { values: readonly number[] }): JSX.Element {
  const canvas = useCanvas((pen, width, height) => {
    const low = Math.min(...values);
    const high = [...values].sort((a, b) => b - a)[Math.floor(values.length * STEEP)] ?? low;
    pen.strokeStyle = palette.value.accent;
    pen.lineWidth = 1.75;
    pen.beginPath();
    values.forEach((value, number) => {
      const x = 4 + (number / (values.length - 1)) * (width - 8);
      pen.lineTo(x, height - 6 - Math.min((value - low) / (high - low || 1), 1) * (height - 12));
    });
    pen.stroke();
  });
  void palette.value;
  return (
    <figure class="curve">
      <canvas ref={canvas} role="img" aria-label={`Learning curve, ${values.length} steps`} />
      <figcaption>learning curve: {values.length} steps</figcaption>
    </figure>
  );
}

function rename(model: Model): void {
  const name = prompt("Name of the model", model.name)?.trim();
  if (name) say({ type: "renameModel", model: model.id, name });
}

function ModelList(): JSX.Element {
  return (
    <Section title="Models">
      <ul class="models">
        {state.models.value.map((model) => (
          <li key={model.id} class={state.model.value?.id === model.id ? "chosen" : ""}>
            <button type="button" onClick={() => say({ type: "chooseModel", model: model.id })}>
              <strong>{model.name}</strong>
              <span class="quiet">{model.summary}</span>
            </button>
            {model.own && <IconButton label={`Rename ${model.name}`} icon={Pencil} onPress={() => rename(model)} />}
            {model.kind !== "plain" && (
              <IconButton
                label={`Save ${model.name}`}
                icon={Download}
                onPress={() => say({ type: "exportModel", model: model.id })}
              />
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}
