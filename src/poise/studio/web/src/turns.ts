/** Rotations as a person types them: degrees about X, then Y, then Z of the world. */
import { Euler, MathUtils, Quaternion } from "three";
import type { Quat, Vec3 } from "./arrays";

const ORDER = "ZYX"; // intrinsic ZYX is X, then Y, then Z about fixed axes

export function degreesFromQuaternion([w, x, y, z]: Quat): Vec3 {
  const angles = new Euler().setFromQuaternion(new Quaternion(x, y, z, w), ORDER);
  return [angles.x, angles.y, angles.z].map((angle) => MathUtils.radToDeg(angle)) as Vec3;
}

export function quaternionFromDegrees(degrees: Vec3): Quat {
  const [x, y, z] = degrees.map((angle) => MathUtils.degToRad(angle)) as Vec3;
  const turn = new Quaternion().setFromEuler(new Euler(x, y, z, ORDER));
  return [turn.w, turn.x, turn.y, turn.z];
}

export const threeQuaternion = ([w, x, y, z]: Quat): Quaternion => new Quaternion(x, y, z, w);

/** The same turn in the angles that are nearest to others: every turn has two sets of them, and full circles more. */
export function nearestTurn([x, y, z]: Vec3, other: Vec3): Vec3 {
  const both: Vec3[] = [
    [x, y, z],
    [x + 180, 180 - y, z + 180],
  ];
  const [one, two] = both.map((angles) =>
    angles.map((angle, k) => angle + 360 * Math.round((other[k]! - angle) / 360)),
  ) as [Vec3, Vec3];
  const away = (angles: Vec3): number => Math.hypot(...angles.map((angle, k) => angle - other[k]!));
  return away(one) <= away(two) ? one : two;
}
