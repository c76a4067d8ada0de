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

const MOMENT = 1e-3; // seconds over which velocities are compared

/** The angular velocity about the world's axes, in radians a second, of angles that change by degrees a second. */
export function spinFromRates(degrees: Vec3, rates: Vec3): Vec3 {
  const [before, after] = [-0.5, 0.5].map((share) =>
    threeQuaternion(quaternionFromDegrees(degrees.map((angle, k) => angle + share * MOMENT * rates[k]!) as Vec3)),
  ) as [Quaternion, Quaternion];
  const { w, x, y, z } = after.multiply(before.invert());
  return [x, y, z].map((part) => (2 * Math.sign(w) * part) / MOMENT) as Vec3;
}

/** The other way round. */
export function ratesFromSpin(degrees: Vec3, spin: Vec3): Vec3 {
  const turn = threeQuaternion(quaternionFromDegrees(degrees));
  const [before, after] = [-0.25, 0.25].map((share) => {
    const [x, y, z] = spin.map((part) => share * MOMENT * part) as Vec3;
    const turned = new Quaternion(x, y, z, 1).normalize().multiply(turn);
    return nearestTurn(degreesFromQuaternion([turned.w, turned.x, turned.y, turned.z]), degrees);
  }) as [Vec3, Vec3];
  return after.map((angle, k) => (angle - before[k]!) / MOMENT) as Vec3;
}

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
