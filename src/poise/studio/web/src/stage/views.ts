/** Where the camera stands: presets around whatever the person is looking at. */
import { Vector3 } from "three";

export const VIEWS = ["perspective", "front", "back", "left", "right", "top"] as const;
export type ViewName = (typeof VIEWS)[number];

const DIRECTIONS: Record<ViewName, readonly [number, number, number]> = {
  perspective: [0.62, 0.3, 1],
  front: [0, 0.06, 1],
  back: [0, 0.06, -1],
  left: [1, 0.06, 0],
  right: [-1, 0.06, 0],
  top: [0, 1, 0.001],
};

export function standpoint(view: ViewName, target: Vector3, distance: number): Vector3 {
  return new Vector3(...DIRECTIONS[view]).normalize().multiplyScalar(distance).add(target);
}
