/** What the graph shows: a handle's or joint's places or turns over time, and the keys on them. */
import { Quaternion } from "three";
import { type Quat, type Vec3, jointRotation } from "../arrays";
import type { Key } from "../messages";
import * as state from "../state";
import { degreesFromQuaternion, nearestTurn, threeQuaternion } from "../turns";

export type Quantity = "position" | "rotation";

/** A key on the curves. One of the whole body has no key of a handle. */
export interface Knot {
  readonly frame: number;
  readonly value: Vec3;
  readonly key: Key | null;
}

export interface Curves {
  /** Metres, or degrees, in every frame; NaN where nothing is known yet. */
  readonly points: readonly Vec3[];
  readonly knots: readonly Knot[];
}

export function curvesOf(quantity: Quantity): Curves {
  return quantity === "position" ? places() : turns();
}

/** The handle that is selected, where it has keys that turn it; its turns are of the world, those of joints of their parents. */
export function isTurnedByKeys(): boolean {
  return ownKeys().some(({ rotation }) => rotation);
}

/** How the parent of the selected joint is turned at a frame; a handle that is turned by keys has the world as its parent. */
export function parentTurn(frame: number): Quaternion {
  const joint = selectedJoint();
  const parent = isTurnedByKeys() ? -1 : (state.body.value?.joints[joint]?.parent ?? -1);
  const world = state.motion.value?.at(frame);
  return world && parent >= 0 ? threeQuaternion(jointRotation(world, parent)) : new Quaternion();
}

const selectedJoint = (): number => state.jointNumber(state.selectedJoints.value[0] ?? "");

function ownKeys(): readonly Key[] {
  return (state.scene.value?.timeline.keys ?? []).filter(({ handle }) => handle === state.selected.value);
}

function places(): Curves {
  const motion = state.motion.value;
  const id = state.selected.value;
  if (!id || !motion) return { points: [], knots: [] };
  const path = motion.path(id);
  const knots = ownKeys().flatMap((key) => (key.position ? [{ frame: key.frame, value: key.position, key }] : []));
  const way = motion.way(selectedJoint()); // a path is known where keys reach
  const points = way.map((place, frame) => (Number.isFinite(path[frame]?.[0]) ? path[frame]! : place));
  return { points, knots };
}

function turns(): Curves {
  const motion = state.motion.value;
  const joint = selectedJoint();
  if (!motion || joint < 0) return { points: [], knots: [] };
  const points: Vec3[] = [];
  let last: Vec3 = [0, 0, 0];
  for (let frame = 0; frame < motion.frames; frame += 1) {
    const world = motion.at(frame);
    if (world) last = nearestTurn(degreesOf(parentTurn(frame).invert().multiply(turnOf(world, joint))), last);
    points.push(world ? last : [NaN, NaN, NaN]);
  }
  return { points, knots: turnKnots(points) };
}

function turnKnots(points: readonly Vec3[]): Knot[] {
  if (!isTurnedByKeys())
    return (state.scene.value?.timeline.poses ?? []).map(({ frame }) => ({ frame, value: points[frame]!, key: null }));
  return ownKeys().flatMap((key) => {
    const near = points[key.frame];
    const value = key.rotation && near && nearestTurn(degreesFromQuaternion(key.rotation), near);
    return value ? [{ frame: key.frame, value, key }] : [];
  });
}

const turnOf = (world: Float32Array, joint: number): Quaternion => threeQuaternion(jointRotation(world, joint));

const degreesOf = ({ w, x, y, z }: Quaternion): Vec3 => degreesFromQuaternion([w, x, y, z] as Quat);
