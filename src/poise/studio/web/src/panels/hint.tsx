/** The tour on first use: five steps, one at a time, each gone once its thing was done; it can be skipped. */
import { computed, effect, signal } from "@preact/signals";
import type { JSX } from "preact";
import { X } from "lucide-preact";
import * as state from "../state";

interface Step {
  readonly name: string;
  readonly words: string;
  readonly done: () => boolean;
}

const STEPS: readonly Step[] = [
  { name: "drag", words: "Drag a hand: the body follows.", done: () => state.dragged.value !== null },
  {
    name: "second",
    words: "Click another joint to hold it where it is, then drag again.",
    done: () => state.handles.value.length >= 2,
  },
  {
    name: "prior",
    words: "Try another model above: same handles, another pose. The ghost shows the previous one.",
    done: () => state.ghostOf.value !== null,
  },
  {
    name: "turn",
    words: "Press E and click a joint: the rings turn it, and the rest of the pose stays.",
    done: () => state.tool.value === "rotate" && state.selected.value !== null,
  },
  {
    name: "animate",
    words: "Open Animate: what you change is keyed at the playhead. Space plays it.",
    done: () => state.workspace.value === "animate",
  },
];

const KEPT = "poise.hints";
const done = signal<ReadonlySet<string>>(new Set((localStorage.getItem(KEPT) ?? "").split(" ")));

/** Whether the tour has steps left. */
export const touring = computed(() => STEPS.some(({ name }) => !done.value.has(name)));

function finish(name: string): void {
  if (done.value.has(name)) return;
  done.value = new Set([...done.value, name]);
  localStorage.setItem(KEPT, [...done.value].join(" "));
}

effect(() => {
  const current = STEPS.find((step) => !done.value.has(step.name));
  if (current?.done()) finish(current.name);
});

export function startTour(): void {
  done.value = new Set();
  localStorage.removeItem(KEPT);
  state.tool.value = "drag";
  state.workspace.value = "pose";
}

export function Hint(): JSX.Element | null {
  const number = STEPS.findIndex(({ name }) => !done.value.has(name));
  const step = STEPS[number];
  if (!step || state.workspace.value !== "pose" || !state.pose.value) return null;
  return (
    <div class="hint float" role="note" aria-label="Tour">
      <span class="count">
        {number + 1} of {STEPS.length}
      </span>
      {step.words}
      <button type="button" onClick={() => finish(step.name)}>
        Next
      </button>
      <button
        type="button"
        aria-label="Skip the tour"
        title="Skip the tour"
        onClick={() => STEPS.forEach(({ name }) => finish(name))}
      >
        <X size={14} aria-hidden="true" />
      </button>
    </div>
  );
}
