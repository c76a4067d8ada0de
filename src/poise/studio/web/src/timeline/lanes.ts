/** What the lanes of the timeline hold, and where things are on them. */
import { signal } from "@preact/signals";
import { clamp } from "../arrays";
import type { KeyPlace } from "../messages";
import { clock } from "../shown";
import * as state from "../state";

export const RULER = 24; // pixels
export const LANE = 24;
export const MARGIN = 10;
const FEWEST = 8; // frames that the timeline shows at its closest
/** Parts that touch something, by role. */
export const TOUCHING: Readonly<Record<string, string>> = {
  left_foot: "left foot",
  right_foot: "right foot",
  left_hand: "left hand",
  right_hand: "right hand",
  left_shin: "left knee",
  right_shin: "right knee",
  pelvis: "seat",
};

export interface Bar {
  readonly first: number;
  readonly last: number;
  readonly kind: "pin" | "style" | "gap" | "filled" | "contact";
  readonly words?: string;
}

export interface Lane {
  readonly name: string;
  readonly label: string;
  /** The handle whose keys these are, null for the whole body. */
  readonly handle?: string | null;
  readonly keys: readonly number[];
  /** Those of them that are drawn small. */
  readonly small?: readonly number[];
  readonly bars: readonly Bar[];
  readonly chosen: boolean;
}

/** The frames that are in view; null for all. */
const window_ = signal<readonly [number, number] | null>(null);

/** The frames in view of the timeline as it is now. */
export function inView(): readonly [number, number] {
  const end = Math.max(clock.value.frames - 1, 1);
  const [first, last] = window_.value ?? [0, end];
  return first >= 0 && last <= end ? [first, last] : [0, end];
}

export const isZoomed = (): boolean => window_.value !== null;

export function showFrames(first: number, last: number): void {
  const end = Math.max(clock.value.frames - 1, 1);
  const span = clamp(last - first, Math.min(FEWEST, end), end);
  const start = clamp(first, 0, end - span);
  window_.value = span === end ? null : [start, start + span];
}

export const showAllFrames = (): void => void (window_.value = null);

export class Scale {
  private readonly first: number;
  private readonly last: number;

  constructor(
    readonly frames: number,
    readonly width: number,
  ) {
    [this.first, this.last] = inView();
  }

  x(frame: number): number {
    return MARGIN + ((frame - this.first) / (this.last - this.first)) * (this.width - 2 * MARGIN);
  }

  /** Where in time a place is, between frames. */
  at(x: number): number {
    return this.first + ((x - MARGIN) / (this.width - 2 * MARGIN)) * (this.last - this.first);
  }

  frame(x: number): number {
    return Math.round(clamp(this.at(x), 0, this.frames - 1));
  }

  /** Closer or further, about a place. */
  zoom(x: number, by: number): void {
    const middle = this.at(x);
    showFrames(middle - (middle - this.first) * by, middle + (this.last - middle) * by);
  }

  pan(by: number): void {
    const frames = (by / (this.width - 2 * MARGIN)) * (this.last - this.first);
    showFrames(this.first + frames, this.last + frames);
  }
}

export function lanesNow(): Lane[] {
  if (state.workspace.value === "capture") return markerLanes();
  const made = state.isPosed.value || state.scene.value?.timeline.clip ? [] : [styleLane()];
  return [...made, ...bodyLane(), ...handleLanes(), ...contactLanes()];
}

/** Every key that is there. */
export function allKeys(): KeyPlace[] {
  const timeline = state.scene.value?.timeline;
  const bodies = (timeline?.poses ?? []).map(({ frame }) => ({ handle: null, frame }));
  return [...bodies, ...(timeline?.keys ?? []).map(({ handle, frame }) => ({ handle, frame }))];
}

export function isSelected(handle: string | null, frame: number): boolean {
  return state.selectedKeys.value.some((key) => key.handle === handle && key.frame === frame);
}

function bodyLane(): Lane[] {
  const poses = state.scene.value?.timeline.poses ?? [];
  if (!poses.length && !state.isPosed.value) return [];
  const keys = poses.map(({ frame }) => frame);
  const small = poses.filter(({ kind }) => kind === "breakdown").map(({ frame }) => frame);
  const bars = poses
    .filter(({ hold }) => hold > 0)
    .map(({ frame, hold }) => ({ first: frame, last: frame + hold, kind: "pin" as const }));
  return [{ name: "body", label: "whole body", handle: null, keys, small, bars, chosen: false }];
}

function handleLanes(): Lane[] {
  const timeline = state.scene.value?.timeline;
  const joints = new Map(state.handles.value.map((handle) => [handle.id, handle.joint]));
  const names = new Set([
    ...(state.isPosed.value ? [] : joints.keys()),
    ...(timeline?.keys ?? []).map((key) => key.handle),
    ...(timeline?.pins ?? []).map((pin) => pin.handle),
  ]);
  return [...names].map((name) => ({
    name,
    label: state.labelOf(joints.get(name) ?? name),
    handle: name,
    keys: (timeline?.keys ?? []).filter((key) => key.handle === name).map((key) => key.frame),
    bars: (timeline?.pins ?? [])
      .filter((pin) => pin.handle === name)
      .map(({ first, last }) => ({ first, last, kind: "pin" as const })),
    chosen: name === state.selected.value || state.alsoSelected.value.has(name),
  }));
}

function contactLanes(): Lane[] {
  if (!state.showContacts.value || !state.motion.value) return [];
  return Object.entries(TOUCHING).flatMap(([part, name]) => {
    const bars = state.contacts.value
      .filter((contact) => contact.part === part)
      .map(({ first, last }) => ({ first, last, kind: "contact" as const }));
    const label = `${name} on`;
    return bars.length ? [{ name: `contact ${part}`, label, keys: [], bars, chosen: false }] : [];
  });
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
