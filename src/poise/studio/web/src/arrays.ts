/** Arrays as they come over the wire: bytes, little-endian; of poses seven numbers per joint. */

/** Position x y z, rotation w x y z. */
export const STRIDE = 7;

export type Vec2 = [number, number];
export type Vec3 = [number, number, number];
export type Quat = [number, number, number, number];

interface NumberArrayType<A> {
  new (buffer: ArrayBuffer): A;
}

/** The bytes as numbers, copied: a message's bytes need not be aligned. */
export function bytesAs<A>(type: NumberArrayType<A>, bytes: Uint8Array): A {
  return new type(bytes.slice().buffer as ArrayBuffer);
}

export function floats(bytes: Uint8Array): Float32Array {
  return bytesAs<Float32Array>(Float32Array, bytes);
}

export function jointPosition(world: Float32Array, joint: number): Vec3 {
  const at = joint * STRIDE;
  return [world[at]!, world[at + 1]!, world[at + 2]!];
}

export function jointRotation(world: Float32Array, joint: number): Quat {
  const at = joint * STRIDE + 3;
  return [world[at]!, world[at + 1]!, world[at + 2]!, world[at + 3]!];
}

export function distance(a: Vec3, b: Vec3): number {
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/** How far the joint that differs most lies apart in two poses. */
export function furthest(a: Float32Array, b: Float32Array): number {
  let most = 0;
  for (let joint = 0; joint * STRIDE < a.length; joint += 1) {
    most = Math.max(most, distance(jointPosition(a, joint), jointPosition(b, joint)));
  }
  return most;
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
