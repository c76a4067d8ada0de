/** The hand on the timeline: scrub, move keys, stretch pins, choose ranges, lock contacts, zoom. */
import { signal } from "@preact/signals";
import type { Contact, KeyPlace, Pin } from "../messages";
import { clock, frame, scrub } from "../shown";
import * as state from "../state";
import { putKey, say } from "../studio";
import { LANE, type Lane, RULER, Scale, allKeys, isSelected } from "./lanes";

const REACH = 8; // pixels

type Hold =
  | { readonly what: "head" }
  | { readonly what: "range"; readonly from: number }
  | { readonly what: "box"; readonly from: Corner }
  | { readonly what: "keys"; readonly from: number }
  | { readonly what: "pin"; readonly pin: Pin; readonly end: "first" | "last" };

/** A frame, and the number of a lane. */
type Corner = readonly [number, number];

const hold = signal<Hold | null>(null);
/** Two corners of a box that is drawn about keys. */
export const keyBox = signal<readonly [Corner, Corner] | null>(null);
/** By how many frames the selected keys are being moved. */
export const keysMoved = signal(0);

interface Under {
  readonly lane: Lane | undefined;
  readonly number: number;
  readonly scale: Scale;
  readonly x: number;
}

function under(event: MouseEvent, lanes: readonly Lane[]): Under {
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  const number = Math.floor((event.clientY - box.top - RULER) / LANE);
  return {
    lane: number >= 0 ? lanes[number] : undefined,
    number,
    scale: new Scale(clock.value.frames, box.width),
    x: event.clientX - box.left,
  };
}

export function press(event: PointerEvent, lanes: readonly Lane[]): void {
  (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
  const place = under(event, lanes);
  const key = keyUnder(place);
  if (key) chooseKey(key, event.shiftKey);
  else if (!event.shiftKey) state.selectedKeys.value = [];
  if (place.lane && !event.shiftKey) chooseLane(place.lane);
  state.selectedContact.value = contactAt(place.lane, place.scale.frame(place.x));
  hold.value = held(event, place, key);
  if (hold.value.what !== "range" && hold.value.what !== "box") scrub(key?.frame ?? place.scale.frame(place.x), false);
}

function held(event: PointerEvent, { lane, number, scale, x }: Under, key: KeyPlace | null): Hold {
  if (key) return { what: "keys", from: key.frame };
  if (event.shiftKey && number >= 0 && state.workspace.value === "animate")
    return { what: "box", from: [scale.at(x), number] };
  if (event.shiftKey) return { what: "range", from: scale.frame(x) };
  const pin = pinsOf(lane).find((each) => Math.min(near(scale, each.first, x), near(scale, each.last, x)) < REACH);
  if (!pin) return { what: "head" };
  return { what: "pin", pin, end: near(scale, pin.first, x) < near(scale, pin.last, x) ? "first" : "last" };
}

export function move(event: PointerEvent): void {
  const now = hold.value;
  if (!now) return;
  const { scale, x, number } = under(event, []);
  const to = scale.frame(x);
  if (now.what === "box") return void (keyBox.value = [now.from, [scale.at(x), number]]);
  if (now.what === "range")
    state.range.value = to === now.from ? null : [Math.min(now.from, to), Math.max(now.from, to)];
  else scrub(to, false);
  if (now.what === "keys") keysMoved.value = to - now.from;
}

export function release(event: PointerEvent, lanes: readonly Lane[]): void {
  const now = hold.value;
  if (now?.what === "box" && keyBox.value) chooseKeysAmong(lanes, ...keyBox.value);
  hold.value = keyBox.value = null;
  keysMoved.value = 0;
  if (!now || now.what === "box") return;
  const { scale, x } = under(event, []);
  const to = scale.frame(x);
  if (now.what === "range") {
    chooseKeysIn(state.range.value);
    return;
  }
  if (now.what === "keys" && to !== now.from) moveKeys(to - now.from);
  if (now.what === "pin") movePin(now.pin, now.end, to);
  scrub(to, true);
}

/** A contact is locked; elsewhere on a lane a key is made. */
export function twice(event: MouseEvent, lanes: readonly Lane[]): void {
  const { lane, scale, x } = under(event, lanes);
  if (!lane || state.workspace.value === "capture") return;
  const at = scale.frame(x);
  const contact = contactAt(lane, at);
  if (contact) lock(contact);
  else if (typeof lane.handle === "string") putKey({ handle: lane.handle, frame: at, position: null, rotation: null });
}

/** Over the ruler, or with Ctrl, the wheel zooms; with Shift, or sideways, it shifts. */
export function wheel(event: WheelEvent): void {
  const { scale, x } = under(event, []);
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (sideways) scale.pan(event.deltaX || event.deltaY);
  else if (event.ctrlKey || event.metaKey || event.clientY - box.top < RULER) scale.zoom(x, 1.0015 ** event.deltaY);
  else return;
  event.preventDefault();
}

export function arrow(event: KeyboardEvent): void {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  event.stopPropagation();
  if (event.altKey && state.selectedKeys.value.length) moveKeys(step);
  else scrub(frame.value + step * (event.shiftKey ? 10 : 1), true);
}

export function chooseLane(lane: Lane): void {
  if (state.workspace.value === "capture") state.selectedMarker.value = lane.name;
  else if (typeof lane.handle === "string") state.select(lane.handle);
}

function keyUnder({ lane, scale, x }: Under): KeyPlace | null {
  const at = lane?.keys.find((key) => near(scale, key, x) < REACH);
  return lane?.handle !== undefined && at !== undefined ? { handle: lane.handle, frame: at } : null;
}

function chooseKey(key: KeyPlace, more: boolean): void {
  if (more) state.selectedKeys.value = [...state.selectedKeys.value, key];
  else if (!isSelected(key.handle, key.frame)) state.selectedKeys.value = [key];
}

function chooseKeysIn(range: readonly [number, number] | null): void {
  if (range) state.selectedKeys.value = allKeys().filter((key) => key.frame >= range[0] && key.frame <= range[1]);
}

/** Selects the keys of a box over some lanes, besides those that are selected. */
function chooseKeysAmong(lanes: readonly Lane[], from: Corner, to: Corner): void {
  const [first, last] = [Math.min(from[0], to[0]), Math.max(from[0], to[0])];
  const within = lanes
    .slice(Math.max(Math.min(from[1], to[1]), 0), Math.max(from[1], to[1]) + 1)
    .flatMap(({ handle, keys }) => (handle === undefined ? [] : keys.map((at) => ({ handle, frame: at }))))
    .filter(({ frame: at }) => at >= first && at <= last);
  const more = within.filter((key) => !isSelected(key.handle, key.frame));
  state.selectedKeys.value = [...state.selectedKeys.value, ...more];
}

function moveKeys(by: number): void {
  const keys = [...state.selectedKeys.value];
  say({ type: "moveKeys", keys, by });
  state.selectedKeys.value = keys.map((key) => ({ ...key, frame: key.frame + by }));
}

function pinsOf(lane: Lane | undefined): Pin[] {
  return (state.scene.value?.timeline.pins ?? []).filter((pin) => pin.handle === lane?.handle);
}

function movePin(pin: Pin, end: "first" | "last", to: number): void {
  const [first, last] = end === "first" ? [Math.min(to, pin.last), pin.last] : [pin.first, Math.max(to, pin.first)];
  if (first === pin.first && last === pin.last) return;
  if (first !== pin.first) say({ type: "removePin", handle: pin.handle, first: pin.first });
  say({ type: "putPin", pin: { ...pin, first, last } });
}

function contactAt(lane: Lane | undefined, at: number): Contact | null {
  const part = lane?.name.match(/^contact (.*)/)?.[1];
  return state.contacts.value.find((each) => each.part === part && each.first <= at && at <= each.last) ?? null;
}

export function lock({ part, first, last }: Contact): void {
  say({ type: "lockContact", part, first, last, ease: state.ease.value });
  state.selectedContact.value = null;
}

const near = (scale: Scale, at: number, x: number): number => Math.abs(scale.x(at) - x);
