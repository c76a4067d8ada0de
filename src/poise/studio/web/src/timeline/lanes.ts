/** What the lanes of the timeline hold, and where things are on them. */
import * as state from "../state";

export const RULER = 24; // pixels
export const LANE = 24;
export const MARGIN = 10;

export interface Bar {
  readonly first: number;
  readonly last: number;
  readonly kind: "pin" | "style" | "gap" | "filled";
  readonly words?: string;
}

export interface Lane {
  readonly name: string;
  readonly label: string;
  readonly keys: readonly number[];
  readonly bars: readonly Bar[];
  readonly chosen: boolean;
}

export class Scale {
  constructor(
    readonly frames: number,
    readonly width: number,
  ) {}

  x(frame: number): number {
    return MARGIN + (frame / Math.max(this.frames - 1, 1)) * (this.width - 2 * MARGIN);
  }

  frame(x: number): number {
    const share = (x - MARGIN) / (this.width - 2 * MARGIN);
    return Math.round(Math.min(Math.max(share, 0), 1) * (this.frames - 1));
  }
}

export function lanesNow(): Lane[] {
  return state.workspace.value === "capture" ? markerLanes() : [styleLane(), ...handleLanes()];
}

function handleLanes(): Lane[] {
  const timeline = state.scene.value?.timeline;
  const joints = new Map(state.handles.value.map((handle) => [handle.id, handle.joint]));
  const names = new Set([
    ...joints.keys(),
    ...(timeline?.keys ?? []).map((key) => key.handle),
    ...(timeline?.pins ?? []).map((pin) => pin.handle),
  ]);
  return [...names].map((name) => ({
    name,
    label: state.labelOf(joints.get(name) ?? name),
    keys: (timeline?.keys ?? []).filter((key) => key.handle === name).map((key) => key.frame),
    bars: (timeline?.pins ?? [])
      .filter((pin) => pin.handle === name)
      .map(({ first, last }) => ({ first, last, kind: "pin" as const })),
    chosen: name === state.selected.value,
  }));
}

function styleLane(): Lane {
  const timeline = state.scene.value?.timeline;
  const keys = [...(timeline?.styles ?? [])].sort((a, b) => a.frame - b.frame);
  const bars = keys.map((key, number) => ({
    first: key.frame,
    last: keys[number + 1]?.frame ?? (timeline?.frames ?? 1) - 1,
    kind: "style" as const,
    words: key.weights
      .map(({ model, weight }) => `${nameOf(model)}${key.weights.length > 1 ? ` ${Math.round(weight * 100)} %` : ""}`)
      .join(" + "),
  }));
  return { name: "style", label: "style", keys: [], bars, chosen: false };
}

function nameOf(id: string): string {
  return state.models.value.find((model) => model.id === id)?.name ?? id;
}

function markerLanes(): Lane[] {
  const take = state.take.value;
  if (!take) return [];
  return take.byGaps.map((number) => ({
    name: take.markers[number]!,
    label: take.markers[number]!,
    keys: [],
    bars: take.gaps(number).map(([first, last]) => ({ first, last, kind: take.isFilled ? "filled" : "gap" })),
    chosen: take.markers[number] === state.selectedMarker.value,
  }));
}
