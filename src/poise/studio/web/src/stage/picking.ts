/** What is under the pointer: handles before keys before joints, nearest on the screen first. */
import { LOOK_AT, type Key } from "../messages";
import { type Vec2, type Vec3, distance, jointPosition } from "../arrays";
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

export function pick(stage: Stage, pixel: Vec2): Picked | null {
  if (state.workspace.value === "capture") return nearest(stage, pixel, markerCandidates(), HANDLE_REACH);
  return (
    nearest(stage, pixel, handleCandidates(), HANDLE_REACH) ??
    nearest(stage, pixel, keyCandidates(), KEY_REACH) ??
    nearest(stage, pixel, jointCandidates(), JOINT_REACH)
  );
}

interface Candidate {
  readonly picked: Picked;
  readonly penalty: number;
}

function nearest(stage: Stage, pixel: Vec2, candidates: Candidate[], reach: number): Picked | null {
  let best: Picked | null = null;
  let shortest = reach;
  for (const { picked, penalty } of candidates) {
    const at = stage.project(picked.position);
    if (!at) continue;
    const away = Math.hypot(at[0] - pixel[0], at[1] - pixel[1]) + penalty;
    if (away < shortest) [best, shortest] = [picked, away];
  }
  return best;
}

function handleCandidates(): Candidate[] {
  const found: Candidate[] = handlePlaces().map(({ id, wanted }) => ({
    picked: { what: "handle", id, position: wanted },
    penalty: 0,
  }));
  const target = lookAtPlace();
  if (target) found.push({ picked: { what: "lookAt", position: target }, penalty: 0 });
  return found;
}

function keyCandidates(): Candidate[] {
  if (state.workspace.value !== "animate") return [];
  return (state.scene.value?.timeline.keys ?? []).flatMap((key) => {
    const position = key.position;
    return position ? [{ picked: { what: "key", key, position } as const, penalty: 0 }] : [];
  });
}

function markerCandidates(): Candidate[] {
  const take = state.take.value;
  return (take?.markers ?? []).flatMap((marker, number) => {
    const shown = take?.marker(frame.value, number);
    return shown ? [{ picked: { what: "marker", marker, position: shown.position } as const, penalty: 0 }] : [];
  });
}

function jointCandidates(): Candidate[] {
  const joints = shownJoints.value;
  if (!joints) return [];
  return (state.body.value?.joints ?? []).map((joint, number) => ({
    picked: { what: "joint", joint: joint.name, position: jointPosition(joints, number) },
    penalty: joint.end ? END_PENALTY : 0,
  }));
}

export interface HandlePlace {
  readonly id: string;
  /** Where it should be, and where the body has it. */
  readonly wanted: Vec3;
  readonly actual: Vec3;
  readonly missed: number;
}

export function handlePlaces(): HandlePlace[] {
  const pose = state.pose.value;
  const joints = shownJoints.value;
  if (!pose || !joints) return [];
  const asked = new Set(ahead.value ? [] : pose.residuals.map((residual) => residual.handle));
  return state.handles.value.flatMap((handle, number) => {
    const joint = state.jointNumber(handle.joint);
    if (joint < 0) return [];
    const onBody = joints === pose.joints ? pointOf(pose.points, number) : null;
    const actual = onBody ?? jointPosition(joints, joint);
    const target = handle.pinned && asked.has(handle.id) ? handle.position : null;
    const held = state.dragged.value?.id === handle.id ? state.dragged.value.position : null;
    const wanted = held ?? target ?? actual;
    return [{ id: handle.id, wanted, actual, missed: distance(wanted, actual) }];
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
