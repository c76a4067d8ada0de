/** What could be done next: asked of the server once the hand has rested, forgotten as soon as something moves. */
import { effect, signal } from "@preact/signals";
import { floats } from "./arrays";
import * as state from "./state";
import { listen, say } from "./studio";
import * as view from "./view";

const REST = 700; // milliseconds

export interface NextHandle {
  readonly joint: string;
  readonly share: number;
  readonly words: string;
}

/** The joint whose handle would settle most of what is open. */
export const nextHandle = signal<NextHandle | null>(null);
/** Other poses that the handles leave open; the first are of other kinds, with these shares. */
export const others = signal<readonly Float32Array[]>([]);
export const kinds = signal<readonly number[]>([]);
/** The one of them that the pointer is on. */
export const pointedKind = signal<number | null>(null);
/** A model of one action that the pose looks like. */
export const looksLike = signal<string | null>(null);

function forget(): void {
  nextHandle.value = looksLike.value = null;
  others.value = [];
  kinds.value = [];
  pointedKind.value = null;
}

function canAsk(): boolean {
  const resting = !state.dragged.value && !state.playing.value && !state.isLive.value && state.pose.value?.fine;
  const posing = state.workspace.value === "pose" && state.handles.value.some(({ pinned }) => pinned);
  return !!resting && posing && (view.hints.value || view.soft.value);
}

export function installAdvice(): void {
  let later = 0;
  effect(() => {
    void [state.pose.value, state.scene.value];
    clearTimeout(later);
    forget();
    if (canAsk()) later = window.setTimeout(() => say({ type: "askAdvice", others: true }), REST);
  });
  listen((message) => {
    if (message.type === "looksLike") looksLike.value = message.model;
    if (message.type !== "leftOpen") return;
    const { joint, share, words } = message;
    nextHandle.value = joint === null ? null : { joint, share, words };
    others.value = message.others.map(floats);
    kinds.value = message.kinds;
  });
}
