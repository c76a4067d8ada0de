/** What a person can do, each as one call; and what to do with what the server says. */
import { batch, signal } from "@preact/signals";
import { type Quat, type Vec2, type Vec3, floats } from "./arrays";
import type {
  Bearing,
  Hands,
  ClientMessage,
  SceneHandle,
  Key,
  MotionRange,
  SolvedPose,
  Progress,
  Prop,
  Scene,
  ServerMessage,
  Weight,
} from "./messages";
import { CLIPBOARD } from "./messages";
import { Motion } from "./motion";
import { Line } from "./socket";
import * as state from "./state";
import { TakeData } from "./take";

const line = new Line(receive);
const latestByStream = new Map<string, () => void>();
/** The streams of which a message is on its way: its number, and what the next one still waits for. */
const underWay = new Map<string, { readonly seq: number; drawn: boolean; answered: boolean }>();
const PATIENCE = 250; // milliseconds after which a message counts as answered

/** What the pointer is doing now: all edits of one gesture are one step of undo. */
let gesture: number | null = null;

export function beginGesture(): void {
  gesture = line.nextSeq();
}

export function endGesture(): void {
  gesture = null;
}

export function say(message: ClientMessage): void {
  if (!line.send(message)) state.notify("The studio's server does not answer; nothing was changed.");
}

/** The number of the next message that streams; an answer to it says so. */
function nextSeq(): number {
  state.asked.value = line.nextSeq();
  return state.asked.value;
}

export function sessionToken(): string {
  return line.token ?? "";
}

// --- posing ---------------------------------------------------------------------------------------------------------

/** Says something that changes the pose: the ghost of an earlier result has nothing more to tell. */
function edit(message: ClientMessage): void {
  state.ghostOf.value = null;
  say(message);
}

/** Handles and props as they were put last: until a pose answers, what is typed next builds on them. */
const put = signal<ReadonlyMap<string, { readonly seq: number; readonly value: SceneHandle | Prop }>>(new Map());

/** A handle or prop as it was put last, which the scene may not have yet. */
export function newest<T extends SceneHandle | Prop>(known: T): T {
  const last = put.value.get(nameOf(known));
  return last && last.seq > (state.pose.value?.seq ?? 0) ? (last.value as T) : known;
}

const nameOf = (value: SceneHandle | Prop): string => ("joint" in value ? "handle " : "prop ") + value.id;

function numbered(value: SceneHandle | Prop): number {
  const seq = nextSeq();
  put.value = new Map([...put.value, [nameOf(value), { seq, value }]]);
  return seq;
}

export function putHandle(handle: SceneHandle, keyed = false): void {
  edit({ type: "putHandle", handle, seq: numbered(handle), ease: keyed ? keyEase() : null, gesture });
}

/** A handle on a joint, a palm, fingertips or a sole; it stays where the body has that now. */
export function handleOn(joint: string): SceneHandle {
  const known = state.handles.value.find(({ id, joint: own }) => id === joint || (own === joint && !state.isSkin(id)));
  if (known) return known;
  const handle: SceneHandle = {
    id: joint,
    joint,
    offset: [0, 0, 0],
    position: null,
    rotation: null,
    pinned: true,
    hard: true,
    tolerance: 0.02,
    turnTolerance: 0.1,
    glued: null,
  };
  putHandle(handle);
  return handle;
}

export function changeHandle(id: string, change: Partial<SceneHandle>): void {
  const handle = state.handles.value.find((candidate) => candidate.id === id);
  if (handle) putHandle({ ...newest(handle), ...change }, "position" in change || "rotation" in change);
}

export function removeHandle(id: string): void {
  if (state.selected.value === id) state.select(null);
  say({ type: "removeHandle", id });
}

export function drag(handle: string, target: { position?: Vec3; rotation?: Quat }, last: boolean): void {
  state.ghostOf.value = null;
  const along = target.position ? alongWith(handle) : [];
  stream(`drag ${handle}`, last, () =>
    say({ type: "drag", seq: nextSeq(), handle, ...target, along, last, ease: keyEase(), gesture }),
  );
}

/** The handles that are selected together with one of them. */
export function alongWith(handle: string): string[] {
  const ids = new Set(state.alsoSelected.value);
  if (state.selected.value) ids.add(state.selected.value);
  if (!ids.delete(handle)) return [];
  return state.handles.value.filter(({ id }) => ids.has(id)).map(({ id }) => id);
}

/** Over how many frames what is done by hand is keyed when the hand lets go; null where nothing is. */
export const keyEase = (keyed = state.isKeying.value): number | null => (keyed ? state.ease.value : null);

export function turnJoints(joints: readonly string[], turn: Quat, last: boolean, keyed = state.isKeying.value): void {
  state.ghostOf.value = null;
  stream("turn", last, () =>
    say({ type: "turnJoints", seq: nextSeq(), joints: [...joints], turn, last, ease: keyEase(keyed) }),
  );
}

export function applyPose(pose: string, share: number, mirrored: boolean, last: boolean): void {
  state.ghostOf.value = null;
  const joints = state.onlySelected.value ? [...state.selectedJoints.value] : [];
  stream("pose", last, () =>
    say({ type: "takePose", seq: nextSeq(), pose, share, mirrored, joints, last, ease: keyEase() }),
  );
}

export function putProp(prop: Prop, last: boolean): void {
  state.ghostOf.value = null;
  state.draggedProp.value = last ? null : prop;
  const step = gesture ?? line.nextSeq();
  stream(`prop ${prop.id}`, last, () =>
    say({ type: "putProp", seq: numbered(prop), prop, last, ease: keyEase(), gesture: step }),
  );
}

/** Copies the keys that are selected, else the pose that is shown. */
export function copy(): void {
  state.copiedKeys.value = [...state.selectedKeys.value];
  if (!state.copiedKeys.value.length) say({ type: "copyPose" });
  const keys = state.copiedKeys.value.length;
  state.notify(keys ? `Copied ${keys === 1 ? "1 key" : `${keys} keys`}.` : "Copied the pose.", "info");
}

/** Pastes keys that were copied, the first of them at the playhead, else the pose. */
export function paste(mirrored: boolean): void {
  const keys = [...state.copiedKeys.value];
  const first = Math.min(...keys.map(({ frame }) => frame));
  const by = (state.scene.value?.timeline.frame ?? 0) - first;
  if (keys.length) say({ type: "moveKeys", keys, by, copies: true, mirrored });
  else applyPose(CLIPBOARD, 1, mirrored, true);
}

export const setFeet = (feet: Scene["feet"]): void => edit({ type: "setFeet", feet });
export const setBearing = (bearing: Bearing): void => edit({ type: "setBearing", bearing });
export const setLookAt = (target: Vec3 | null): void => edit({ type: "setLookAt", target, ease: keyEase() });
export const setHands = (hands: Hands): void => edit({ type: "setHands", hands, ease: keyEase() });
export const setConstraints = (text: string): void => edit({ type: "setConstraints", text });
export const mirror = (): void => edit({ type: "mirror", ease: keyEase() });
export const undo = (): void => edit({ type: "undo" });
export const redo = (): void => edit({ type: "redo" });
export const reset = (): void => edit({ type: "reset" });
export const chooseModel = (model: string): void => say({ type: "chooseModel", model });
export const blend = (weights: Weight[]): void => say({ type: "blend", weights });

// --- style space ----------------------------------------------------------------------------------------------------

export function dragLatent(point: Vec2, last: boolean): void {
  const hold = state.holdHandles.value;
  state.latentPlace.value = point; // until the pose that answers knows better
  state.ghostOf.value = null;
  stream("latent", last, () => say({ type: "dragLatent", seq: nextSeq(), point, hold, last, ease: keyEase() }));
}

export function hoverLatent(point: Vec2): void {
  stream("hover", false, () => say({ type: "hoverLatent", seq: line.nextSeq(), point }));
}

// --- timeline -------------------------------------------------------------------------------------------------------

export const setTimeline = (fps: number, frames: number): void => say({ type: "setTimeline", fps, frames });

/** Keys a handle, over the ease and with the pace and the tangents that its key there has. */
export function putKey(key: Omit<Key, "ease" | "easing" | "tangent" | "spin">): void {
  const known = state.scene.value?.timeline.keys.find((old) => old.handle === key.handle && old.frame === key.frame);
  const { easing, tangent, spin } = known ?? { easing: "none", tangent: null, spin: null };
  say({ type: "putKey", key: { ...key, ease: state.ease.value, easing, tangent, spin }, gesture });
}

export const cancel = (task: string): void => say({ type: "cancel", task });

export function openKept(token: string): void {
  say({ type: "openKept", token });
  state.kept.value = [];
}

/** The frame that was asked for last: a scene that was sent before the server knew of it does not move the playhead. */
let askedFrame = { seq: 0, frame: 0 };

export function setFrame(frame: number, last = true): void {
  stream("frame", last, () => {
    askedFrame = { seq: nextSeq(), frame };
    say({ type: "setFrame", ...askedFrame });
  });
}

export function dragKey(key: Key, last: boolean): void {
  stream("key", last, () => say({ type: "dragKey", seq: nextSeq(), key, last }));
}

// --- photo ----------------------------------------------------------------------------------------------------------

export function movePoint(joint: string, pixel: Vec2, last: boolean): void {
  stream(`point ${joint}`, last, () => say({ type: "movePoint", seq: nextSeq(), point: { joint, pixel }, last }));
}

/** One message of a stream is on its way: the first at once, the newest after its answer and a frame of the screen. The
 * last always goes. */
function stream(name: string, last: boolean, send: () => void): void {
  if (last) latestByStream.delete(name);
  else if (underWay.has(name)) {
    latestByStream.set(name, send);
    return;
  }
  send();
  if (last) return;
  const sent = { seq: line.lastSeq, drawn: false, answered: false };
  underWay.set(name, sent);
  requestAnimationFrame(() => {
    sent.drawn = true;
    sendNewest(name);
  });
  setTimeout(() => {
    sent.answered = true;
    sendNewest(name);
  }, PATIENCE);
}

function sendNewest(name: string): void {
  const sent = underWay.get(name);
  if (!sent?.drawn || !sent.answered) return;
  underWay.delete(name);
  const newest = latestByStream.get(name);
  latestByStream.delete(name);
  if (newest) stream(name, false, newest);
}

/** An answer names the newest message that it answers. */
function takeAnswer(message: ServerMessage): void {
  if (!("seq" in message) || message.seq == null) return;
  for (const [name, sent] of [...underWay]) {
    if (sent.seq > message.seq) continue;
    sent.answered = true;
    sendNewest(name);
  }
}

// --- what the server says -------------------------------------------------------------------------------------------

type Hearer = (message: ServerMessage) => void;
const hearers = new Set<Hearer>();

/** Calls back on every message, after the state has taken it in. */
export function listen(hearer: Hearer): () => void {
  hearers.add(hearer);
  return () => hearers.delete(hearer);
}

function receive(message: ServerMessage): void {
  batch(() => takeIn(message));
  hearers.forEach((hearer) => hearer(message));
  takeAnswer(message);
}

function takeIn(message: ServerMessage): void {
  switch (message.type) {
    case "models":
      state.models.value = message.models;
      break;
    case "body":
      state.body.value = message;
      state.motion.value = null;
      say({ type: "askPoses" });
      break;
    case "scene":
      if (message.scene.model !== state.scene.value?.model) state.latentPlace.value = null;
      state.scene.value = atAskedFrame(message.scene);
      if (!message.scene.moving) state.motion.value = null;
      forgetGone(message.scene);
      break;
    case "pose":
      takePose(message);
      break;
    case "ghost":
      state.ghostOf.value = message.world.length ? message.model : null;
      break;
    case "latentMap":
      state.latentMap.value = message;
      break;
    case "motion":
      takeMotion(message);
      break;
    case "poses":
      state.poses.value = message;
      break;
    case "contacts":
      state.contacts.value = message.contacts;
      break;
    case "photo":
      state.photoPixels.value = floats(message.pixels);
      state.alternatives.value = message.alternatives.map(floats);
      break;
    case "take":
      state.take.value = new TakeData(message);
      break;
    case "performing":
      state.performing.value = message;
      state.ghostOf.value = null;
      break;
    case "progress":
      takeProgress(message);
      break;
    case "error":
      put.value = new Map();
      state.notify(message.words);
      break;
    case "remark":
      state.notify(message.words, "info");
      break;
    case "keptScenes":
      state.kept.value = message.scenes;
      break;
    case "welcome":
      state.learnable.value = message.kinds;
      state.motionFiles.value = message.motions;
      state.takeFiles.value = message.takes;
      state.constraintTables.value = message.constraints;
      state.performing.value = null; // where one is under way it says so at once
      askedFrame = { seq: 0, frame: 0 };
      break;
    case "anotherBody":
      state.notify(`The motion cannot be carried onto ${message.name}: ${message.words}`, "info", {
        label: "Clear it",
        take: () => say({ type: "chooseModel", model: message.model, clear: true }),
      });
      break;
    case "leftOpen":
    case "looksLike":
    case "hoverPose":
    case "file":
      break;
  }
}

function atAskedFrame(scene: Scene): Scene {
  const isAnswered = (state.pose.value?.seq ?? 0) >= askedFrame.seq;
  return isAnswered ? scene : { ...scene, timeline: { ...scene.timeline, frame: askedFrame.frame } };
}

/** Deselect what was removed. */
function forgetGone({ timeline }: Scene): void {
  const keys = new Set([
    ...timeline.poses.map(({ frame }) => `null ${frame}`),
    ...timeline.keys.map(({ handle, frame }) => `${handle} ${frame}`),
  ]);
  const left = state.selectedKeys.value.filter(({ handle, frame }) => keys.has(`${handle} ${frame}`));
  if (left.length < state.selectedKeys.value.length) state.selectedKeys.value = left;
  if (state.range.value && state.range.value[1] >= timeline.frames) state.range.value = null;
}

function takePose(pose: SolvedPose): void {
  if (pose.latent) state.latentPlace.value = pose.latent;
  state.pose.value = { ...pose, joints: floats(pose.world), points: floats(pose.handles) };
}

function takeMotion(range: MotionRange): void {
  const joints = state.body.value?.placed ?? 0;
  const frames = state.scene.value?.timeline.frames ?? range.first + range.frames;
  const known = state.motion.value;
  const base = known && known.frames === frames && known.joints === joints ? known : new Motion(frames, joints);
  state.motion.value = base.with(range);
}

function takeProgress(step: Progress): void {
  const next = new Map(state.progress.value);
  if (step.task === "learn" && step.curve.length) state.learningCurve.value = step.curve;
  if (step.share >= 1) next.delete(step.task);
  else next.set(step.task, step);
  state.progress.value = next;
}
