/** How this person looks at the stage; kept by the browser, not by the scene. */
import { type Signal, effect, signal } from "@preact/signals";
import { NAVIGATIONS, type Navigation } from "./stage/views";

const KEPT = "poise.view.";

function kept<T extends string | number | boolean>(name: string, first: T, allowed?: readonly T[]): Signal<T> {
  const text = localStorage.getItem(KEPT + name);
  const found = text === null ? first : (JSON.parse(text) as T);
  const value = signal(typeof found === typeof first && (!allowed || allowed.includes(found)) ? found : first);
  effect(() => localStorage.setItem(KEPT + name, JSON.stringify(value.value)));
  return value;
}

/** Without perspective. */
export const flat = kept<boolean>("flat", false);
export const navigation = kept<Navigation>("navigation", "poise", NAVIGATIONS);
export const snap = kept<boolean>("snap", false);
/** Whether other poses that the handles leave open are shown. */
export const soft = kept<boolean>("soft", false);
/** Whether the page suggests what to do next. */
export const hints = kept<boolean>("hints", true);
export const trails = kept<boolean>("trails", false);
export const ghostCount = kept<number>("ghostCount", 3);
export const ghostStep = kept<number>("ghostStep", 4); // frames
export const ghostsOverRange = kept<boolean>("ghostsOverRange", false);

export const SNAP = 0.05; // metres
export const SNAP_TURN = Math.PI / 12;

/** Whether places snap, to props and to the grid; Ctrl does the opposite. */
export const isSnapping = (opposite: boolean): boolean => snap.value !== opposite;

/** A place on the grid, where that is wished. */
export function snapped<P extends number[]>(place: P, opposite: boolean): P {
  if (!isSnapping(opposite)) return place;
  return place.map((value) => Math.round(value / SNAP) * SNAP) as P;
}
