/** The ways of keyed handles through space: a curve, a tick for every frame, a diamond for every key. */
import type { Vec2, Vec3 } from "../arrays";
import { POSES } from "../messages";
import { frame } from "../shown";
import * as state from "../state";
import { palette } from "../theme";
import * as view from "../view";
import type { Stage } from "./stage";

const FAR = 90; // frames about the shown one that a trail has
const TRAILED = /^(left|right)_(hand|foot)$/;
const NEAR = 24; // frames around the shown one that are drawn strongly

export function paintTrajectories(pen: CanvasRenderingContext2D, stage: Stage): void {
  const timeline = state.scene.value?.timeline;
  if (state.workspace.value !== "animate" || !timeline) return;
  for (const handle of new Set(timeline.keys.map((key) => key.handle)))
    paintPath(pen, state.motion.value?.path(handle) ?? [], stage, handle === state.selected.value);
  const chosen = state.selectedJoints.value.length > 0;
  if (timeline.clip === POSES && chosen) for (const joint of trailed()) paintArc(pen, joint, stage);
  else if (view.trails.value) for (const joint of trailed()) paintPath(pen, trail(joint), stage, false);
  for (const key of timeline.keys) {
    const at = key.position && stage.project(key.position);
    if (at) diamond(pen, at, { chosen: key.handle === state.selected.value, now: key.frame === frame.value });
  }
}

/** The arc of a joint through the poses that are keys. */
function paintArc(pen: CanvasRenderingContext2D, joint: number, stage: Stage): void {
  const way = trail(joint);
  paintPath(pen, way, stage, true);
  for (const key of state.scene.value?.timeline.poses ?? []) {
    const at = way[key.frame] && Number.isFinite(way[key.frame]![0]) ? stage.project(way[key.frame]!) : null;
    if (at) diamond(pen, at, { chosen: true, now: key.frame === frame.value, small: key.kind === "breakdown" });
  }
}

/** The joints that leave trails: those selected, else hands and feet. */
function trailed(): number[] {
  const chosen = state.selectedJoints.value.map(state.jointNumber);
  if (chosen.length) return chosen;
  return (state.body.value?.joints ?? []).flatMap((joint, number) => (TRAILED.test(joint.role ?? "") ? [number] : []));
}

/** The way of a joint over the range, or some time about the frame that is shown. */
function trail(joint: number): Vec3[] {
  const [first, last] = state.range.value ?? [frame.value - FAR, frame.value + FAR];
  const none: Vec3 = [Number.NaN, Number.NaN, Number.NaN];
  return (state.motion.value?.way(joint) ?? []).map((point, at) => (first <= at && at <= last ? point : none));
}

function paintPath(pen: CanvasRenderingContext2D, path: readonly Vec3[], stage: Stage, chosen: boolean): void {
  const colours = palette.value;
  const seen = path.map((point) => (Number.isFinite(point[0]) ? stage.project(point) : null));
  pen.lineWidth = chosen ? 2 : 1.25;
  pen.strokeStyle = chosen ? colours.accent : colours.quiet;
  seen.forEach((at, number) => {
    const before = seen[number - 1];
    if (!at || !before) return;
    pen.globalAlpha = Math.abs(number - frame.value) < NEAR ? 0.95 : 0.4;
    pen.beginPath();
    pen.moveTo(...before);
    pen.lineTo(...at);
    pen.stroke();
  });
  pen.globalAlpha = 1;
  if (chosen) ticks(pen, seen, colours.accent);
}

function ticks(pen: CanvasRenderingContext2D, seen: readonly (Vec2 | null)[], colour: string): void {
  pen.fillStyle = colour;
  for (const at of seen) if (at) pen.fillRect(at[0] - 1.25, at[1] - 1.25, 2.5, 2.5);
}

export interface Look {
  readonly chosen: boolean;
  /** Whether it is at the frame that is shown. */
  readonly now: boolean;
  readonly picked?: boolean;
  readonly small?: boolean | undefined;
}

export function diamond(pen: CanvasRenderingContext2D, at: Vec2, { chosen, now, picked, small }: Look): void {
  const colours = palette.value;
  const size = (now ? 7 : 5.5) * (small ? 0.65 : 1);
  pen.beginPath();
  pen.moveTo(at[0], at[1] - size);
  pen.lineTo(at[0] + size, at[1]);
  pen.lineTo(at[0], at[1] + size);
  pen.lineTo(at[0] - size, at[1]);
  pen.closePath();
  pen.fillStyle = now ? colours.warm : chosen ? colours.accent : colours.quiet;
  pen.fill();
  pen.lineWidth = 1.5;
  pen.strokeStyle = picked ? colours.ink : colours.surface;
  pen.stroke();
}
