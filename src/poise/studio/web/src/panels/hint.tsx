/** Hints on first use: one at a time, each gone for good once its thing was done. */
import { effect, signal } from "@preact/signals";
import type { JSX } from "preact";
import { X } from "lucide-preact";
import * as state from "../state";

interface Step {
  readonly name: string;
  readonly words: string;
  readonly done: () => boolean;
}

const HINTS: readonly Step[] = [
  { name: "drag", words: "Drag a hand: the body follows.", done: () => state.dragged.value !== null },
  {
    name: "second",
    words: "Click another joint to hold it where it is, then drag again.",
    done: () => state.handles.value.length >= 2,
  },
  {
    name: "prior",
    words: "Try another model above: same handles, another body. The ghost is the one before.",
    done: () => state.ghostOf.value !== null,
  },
];

const KEPT = "poise.hints";
const done = signal<ReadonlySet<string>>(new Set((localStorage.getItem(KEPT) ?? "").split(" ")));

function finish(name: string): void {
  if (done.value.has(name)) return;
  done.value = new Set([...done.value, name]);
  localStorage.setItem(KEPT, [...done.value].join(" "));
}

effect(() => {
  const current = HINTS.find((hint) => !done.value.has(hint.name));
  if (current?.done()) finish(current.name);
});

export function Hint(): JSX.Element | null {
  const hint = HINTS.find(({ name }) => !done.value.has(name));
  if (!hint || state.workspace.value !== "pose" || !state.pose.value) return null;
  return (
    <div class="hint float" role="note">
      {hint.words}
      <button
        type="button"
        aria-label="No more hints"
        title="No more hints"
        onClick={() => HINTS.forEach(({ name }) => finish(name))}
      >
        <X size={14} aria-hidden="true" />
      </button>
    </div>
  );
}
