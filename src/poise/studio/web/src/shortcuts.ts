/** Keys: one table, which the help page shows too. */
import * as state from "./state";
import type { Director } from "./stage/director";
import { VIEWS } from "./stage/views";
import { clock, frame, scrub, togglePlay } from "./shown";
import { keyPose, keySelected } from "./timeline/keys";
import { changeHandle, copy, mirror, paste, redo, removeHandle, reset, say, undo } from "./studio";
import { toggleTheme } from "./theme";
import * as view from "./view";

export interface Shortcut {
  readonly keys: string;
  readonly words: string;
  readonly group: "Pose" | "Time" | "View" | "Page";
  readonly does: (director: Director) => void;
}

function toggleSelected(what: "pinned" | "hard"): void {
  const wanted = !state.selectedHandle.value?.[what];
  selectedIds().forEach((id) => changeHandle(id, { [what]: wanted }));
}

/** The handles that are selected. */
function selectedIds(): string[] {
  const ids = new Set([state.selected.value, ...state.alsoSelected.value]);
  return state.handles.value.map(({ id }) => id).filter((id) => ids.has(id));
}

/** The range from here, or up to here. */
function bound(end: 0 | 1): void {
  const [first, last] = state.range.value ?? [0, clock.value.frames - 1];
  const next = end ? [first, frame.value] : [frame.value, last];
  state.range.value = [Math.min(...next), Math.max(...next)];
}

function toggle(what: { value: boolean }): void {
  what.value = !what.value;
}

const NUDGE = 0.01; // metres

const nudges: readonly Shortcut[] = (
  [
    ["ArrowRight", [1, 0, 0]],
    ["ArrowLeft", [-1, 0, 0]],
    ["ArrowUp", [0, 1, 0]],
    ["ArrowDown", [0, -1, 0]],
  ] as const
).flatMap(([key, [right, up]]) => [
  { keys: key, words: "", group: "Pose" as const, does: (d: Director) => d.nudge(right * NUDGE, up * NUDGE, 0) },
  {
    keys: `Shift+${key}`,
    words: "",
    group: "Pose" as const,
    does: (d: Director) => d.nudge(right * NUDGE * 10, up * NUDGE * 10, 0),
  },
]);

export const SHORTCUTS: readonly Shortcut[] = [
  { keys: "Q", words: "Drag in the plane of the view", group: "Pose", does: () => (state.tool.value = "drag") },
  { keys: "W", words: "Move with the gizmo", group: "Pose", does: () => (state.tool.value = "move") },
  { keys: "E", words: "Turn joints with the gizmo", group: "Pose", does: () => (state.tool.value = "rotate") },
  {
    keys: "X",
    words: "Axes of the joint or of the world",
    group: "Pose",
    does: () => (state.localAxes.value = !state.localAxes.value),
  },
  { keys: "B", words: "Select by a box, as Shift+drag does", group: "Pose", does: () => toggle(state.boxing) },
  { keys: "Ctrl+C", words: "Copy the selected keys, or the pose", group: "Pose", does: copy },
  { keys: "Ctrl+V", words: "Paste them here", group: "Pose", does: () => paste(false) },
  { keys: "Ctrl+Shift+V", words: "Paste them mirrored", group: "Pose", does: () => paste(true) },
  { keys: "P", words: "Pin or unpin the handle", group: "Pose", does: () => toggleSelected("pinned") },
  { keys: "H", words: "Hard or soft", group: "Pose", does: () => toggleSelected("hard") },
  { keys: "Delete", words: "Remove the key or the handle", group: "Pose", does: removeSelected },
  { keys: "Backspace", words: "", group: "Pose", does: removeSelected },
  { keys: "M", words: "Mirror left and right", group: "Pose", does: mirror },
  { keys: "Ctrl+Z", words: "Undo", group: "Pose", does: undo },
  { keys: "Ctrl+Shift+Z", words: "Redo", group: "Pose", does: redo },
  { keys: "Ctrl+Y", words: "", group: "Pose", does: redo },
  { keys: "Shift+R", words: "Reset to the model's own pose", group: "Pose", does: reset },
  ...nudges,
  { keys: "Space", words: "Play or stop", group: "Time", does: togglePlay },
  { keys: "S", words: "Key the pose at this frame", group: "Time", does: keyPose },
  { keys: "K", words: "Key the selected handle's own path, or the pose", group: "Time", does: keySelected },
  { keys: ",", words: "One frame back", group: "Time", does: () => scrub(frame.value - 1, true) },
  { keys: ".", words: "One frame forward", group: "Time", does: () => scrub(frame.value + 1, true) },
  { keys: "Home", words: "First frame", group: "Time", does: () => scrub(0, true) },
  { keys: "End", words: "Last frame", group: "Time", does: () => scrub(Number.MAX_SAFE_INTEGER, true) },
  { keys: "[", words: "The range begins here", group: "Time", does: () => bound(0) },
  { keys: "]", words: "The range ends here", group: "Time", does: () => bound(1) },
  { keys: "O", words: "Onion skin", group: "Time", does: () => (state.onion.value = !state.onion.value) },
  ...VIEWS.map((view, number) => ({
    keys: String(number + 1),
    words: "",
    group: "View" as const,
    does: (director: Director) => director.look(view),
  })),
  { keys: "0", words: "With or without perspective", group: "View", does: () => toggle(view.flat) },
  { keys: "N", words: "Snap to props and the grid", group: "View", does: () => toggle(view.snap) },
  { keys: "L", words: "Motion trails", group: "View", does: () => toggle(view.trails) },
  { keys: "U", words: "What else is possible", group: "View", does: () => toggle(view.soft) },
  { keys: "F", words: "Bring the selection or the body into view", group: "View", does: (director) => director.home() },
  {
    keys: "G",
    words: "Show or hide the previous result",
    group: "View",
    does: () => (state.showGhost.value = !state.showGhost.value),
  },
  { keys: "?", words: "This page", group: "Page", does: () => (state.showHelp.value = !state.showHelp.value) },
  { keys: "T", words: "Light or dark", group: "Page", does: toggleTheme },
  { keys: "Escape", words: "Clear the selection", group: "Page", does: letGo },
];

function removeSelected(): void {
  const keys = state.selectedKeys.value;
  state.selectedKeys.value = [];
  if (keys.length) say({ type: "removeKeys", keys: [...keys] });
  else selectedIds().forEach(removeHandle);
}

function letGo(): void {
  if (state.showHelp.value) state.showHelp.value = false;
  else if (state.boxing.value) state.boxing.value = false;
  else if (state.range.value) state.range.value = null;
  else state.select(null);
}

function named(event: KeyboardEvent): string {
  const key = event.key === " " ? "Space" : event.key.length === 1 ? event.key.toUpperCase() : event.key;
  const shifted = event.shiftKey && (event.key.length > 1 || /[a-z]/i.test(event.key));
  return [event.ctrlKey || event.metaKey ? "Ctrl+" : "", shifted ? "Shift+" : "", key].join("");
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement
  );
}

let pointed = false; // whether the pointer was used since the Tab key was

/** A button that was reached by keyboard keeps its own keys; one that was clicked lets go of them. */
function belongsTo(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof HTMLButtonElement) || (key !== "Space" && key !== "Enter")) return false;
  if (pointed) target.blur();
  return !pointed;
}

export function installShortcuts(director: Director): () => void {
  const table = new Map(SHORTCUTS.map((shortcut) => [shortcut.keys, shortcut]));
  const hear = (event: KeyboardEvent): void => {
    const key = named(event);
    if (event.key === "Tab") pointed = false;
    if (isTyping(event.target) || belongsTo(event.target, key) || event.altKey) return;
    const shortcut = table.get(key);
    if (!shortcut) return;
    event.preventDefault();
    shortcut.does(director);
  };
  const point = (): void => void (pointed = true);
  window.addEventListener("pointerdown", point, { capture: true });
  window.addEventListener("keydown", hear);
  return () => {
    window.removeEventListener("pointerdown", point, { capture: true });
    window.removeEventListener("keydown", hear);
  };
}
