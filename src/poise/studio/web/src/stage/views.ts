/** Where the camera stands: presets around whatever the person is looking at, and which buttons move it. */
import { MOUSE, Vector3 } from "three";

export const VIEWS = ["perspective", "front", "back", "left", "right", "top"] as const;
export type ViewName = (typeof VIEWS)[number];
export const NAVIGATIONS = ["poise", "blender", "maya"] as const;
export type Navigation = (typeof NAVIGATIONS)[number];

const DIRECTIONS: Record<ViewName, readonly [number, number, number]> = {
  perspective: [0.62, 0.3, 1],
  front: [0, 0.06, 1],
  back: [0, 0.06, -1],
  left: [1, 0.06, 0],
  right: [-1, 0.06, 0],
  top: [0, 1, 0.001],
};

/** Without perspective the sides are seen exactly from the side. */
export function standpoint(view: ViewName, target: Vector3, distance: number, flat: boolean): Vector3 {
  const [x, y, z] = DIRECTIONS[view];
  const level = flat && view !== "perspective" && view !== "top" ? 0 : y;
  return new Vector3(x, level, z).normalize().multiplyScalar(distance).add(target);
}

type Buttons = { LEFT: MOUSE | null; MIDDLE: MOUSE | null; RIGHT: MOUSE | null };

/** What the mouse's buttons do; with Shift a button that turns shifts the view instead. */
export function buttonsOf(navigation: Navigation, alt: boolean): Buttons {
  if (navigation === "blender") return { LEFT: alt ? MOUSE.ROTATE : null, MIDDLE: MOUSE.ROTATE, RIGHT: MOUSE.PAN };
  if (navigation === "poise") return { LEFT: MOUSE.ROTATE, MIDDLE: MOUSE.DOLLY, RIGHT: MOUSE.PAN };
  return alt
    ? { LEFT: MOUSE.ROTATE, MIDDLE: MOUSE.PAN, RIGHT: MOUSE.DOLLY }
    : { LEFT: null, MIDDLE: MOUSE.PAN, RIGHT: null };
}
