/** What is under the pointer: near on the screen, not behind the body, and of the frame that is shown before all else. */
import { LOOK_AT, type Key } from "../messages";
import { type Vec2, type Vec3, jointPosition } from "../arrays";
import { ahead, frame, shownJoints } from "../shown";
import * as state from "../state";
import type { Stage } from "./stage";

export type Picked =
  | { readonly what: "handle"; readonly id: string; readonly position: Vec3 }
  | { readonly what: "lookAt"; readonly position: Vec3 }
  | { readonly what: "key"; readonly key: Key; readonly position: Vec3 }
  | { readonly what: "marker"; readonly marker: string; readonly position: Vec3 }
  | { readonly what: "joint"; readonly joint: string; readonly position: Vec3 };

const HANDLE_REACH = 15; // pixels
const KEY_REACH = 10;
const JOINT_REACH = 22;
const END_PENALTY = 8; // tips of fingers, toes and head come after the joints next to them
const KEY_PENALTY = 10; // handles come before this frame's keys, then joints, and last the keys of other frames
const JOINT_PENALTY = 20;
const OTHER_FRAME_PENALTY = 30;
const HIPS_FIRST = 12; // pixels by which the hips count as nearer: the thighs begin within them
const BEHIND = 150; // pixels that a metre behind the nearest part of the body counts as

export function pick(stage: Stage, pixel: Vec2): Picked | null {
  if (state.workspace.value === "capture") return best(stage, pixel, markerCandidates());
  return best(stage, pixel, [...handleCandidates(), ...keyCandidates(), ...jointCandidates()]);
}

interface Candidate {
  /** What it lies among: the hips are as near as the thighs on both sides of them. */
  readonly among?: readonly Vec3[];
  readonly picked: Picked;
  readonly reach: number;
  readonly penalty: number;
}

function best(stage: Stage, pixel: Vec2, candidates: Candidate[]): Picked | null {
  const near = candidates.flatMap(({ picked, reach, penalty, among = [] }) => {
    const at = stage.project(picked.position);
    const away = at ? Math.hypot(at[0] - pixel[0], at[1] - pixel[1]) : Infinity;
    const depth = Math.min(...[picked.position, ...among].map((place) => stage.depthOf(place)));
    return away < reach ? [{ picked, cost: away + penalty, depth }] : [];
  });
  const solid = near.filter(({ picked }) => picked.what !== "key"); // a key hides nothing
  const front = Math.min(...(solid.length ? solid : near).map(({ depth }) => depth));
  const ranked = near.map(({ picked, cost, depth }) => ({
    picked,
    cost: cost + BEHIND * Math.max(depth - front, 0),
  }));
  return ranked.sort((a, b) => a.cost - b.cost)[0]?.picked ?? null;
}

function handleCandidates(): Candidate[] {
  const found: Candidate[] = handlePlaces().map(({ id, wanted }) => ({
    picked: { what: "handle", id, position: wanted },
    reach: HANDLE_REACH,
    penalty: 0,
  }));
  const target = lookAtPlace();
  if (target) found.push({ picked: { what: "lookAt", position: target }, reach: HANDLE_REACH, penalty: 0 });
  return found;
}

function keyCandidates(): Candidate[] {
  if (state.workspace.value !== "animate") return [];
  return (state.scene.value?.timeline.keys ?? []).flatMap((key) => {
    const position = key.position;
    const penalty = key.frame === frame.value ? KEY_PENALTY : OTHER_FRAME_PENALTY;
    return position ? [{ picked: { what: "key", key, position } as const, reach: KEY_REACH, penalty }] : [];
  });
}

function markerCandidates(): Candidate[] {
  const take = state.take.value;
  return (take?.markers ?? []).flatMap((marker, number) => {
    const shown = take?.marker(frame.value, number);
    const picked = { what: "marker", marker, position: shown?.position ?? [0, 0, 0] } as const;
    return shown ? [{ picked, reach: HANDLE_REACH, penalty: 0 }] : [];
  });
}

function jointCandidates(): Candidate[] {
  const joints = shownJoints.value;
  if (!joints) return [];
  const known = state.body.value?.joints ?? [];
  const sides = known.flatMap(({ role }, number) => (role?.endsWith("_thigh") ? [jointPosition(joints, number)] : []));
  return known.map((joint, number) => ({
    among: joint.role === "pelvis" ? sides : [],
    picked: { what: "joint", joint: joint.name, position: jointPosition(joints, number) },
    reach: joint.end ? JOINT_REACH - END_PENALTY : JOINT_REACH,
    penalty: JOINT_PENALTY + (joint.end ? END_PENALTY : 0) - (joint.role === "pelvis" ? HIPS_FIRST : 0),
  }));
}

export interface HandlePlace {
  readonly id: string;
  /** Where it should be, and where the body has it. */
  readonly wanted: Vec3;
  readonly actual: Vec3;
  /** How far the solver left it off; the hand that moves ahead of the answer does not count. */
  readonly missed: number;
}

export function handlePlaces(): HandlePlace[] {
  const pose = state.pose.value;
  const joints = shownJoints.value;
  if (!pose || !joints) return [];
  const asked = ahead.value ? [] : pose.residuals;
  const missed = new Map<string | null, number>();
  for (const { handle, unit, value } of asked)
    missed.set(handle, Math.max(missed.get(handle) ?? 0, unit === "m" ? value : 0));
  return state.handles.value.flatMap((handle, number) => {
    const joint = state.jointNumber(handle.joint);
    if (joint < 0) return [];
    const onBody = joints === pose.joints ? pointOf(pose.points, number) : null;
    const actual = onBody ?? jointPosition(joints, joint);
    const target = handle.pinned && missed.has(handle.id) ? handle.position : null;
    const held = state.dragged.value?.id === handle.id ? state.dragged.value.position : null;
    const wanted = held ?? target ?? actual;
    return [{ id: handle.id, wanted, actual, missed: missed.get(handle.id) ?? 0 }];
  });
}

export function lookAtPlace(): Vec3 | null {
  if (state.dragged.value?.id === LOOK_AT) return state.dragged.value.position;
  return state.scene.value?.lookAt ?? null;
}

function pointOf(points: Float32Array, number: number): Vec3 | null {
  const [x, y, z] = points.subarray(number * 3, number * 3 + 3);
  return x === undefined || y === undefined || z === undefined ? null : [x, y, z];
}
