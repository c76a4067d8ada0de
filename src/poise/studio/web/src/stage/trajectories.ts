/** The ways of keyed handles through space: a curve, a tick for every frame, a diamond for every key. */
import type { Vec2, Vec3 } from "../arrays";
import { frame } from "../shown";
import * as state from "../state";
import { palette } from "../theme";
import type { Stage } from "./stage";

const NEAR = 24; // frames around the shown one that are drawn strongly

export function paintTrajectories(pen: CanvasRenderingContext2D, stage: Stage): void {
  const timeline = state.scene.value?.timeline;
  if (state.workspace.value !== "animate" || !timeline) return;
  for (const handle of new Set(timeline.keys.map((key) => key.handle))) {
    const chosen = handle === state.selected.value;
    paintPath(pen, state.motion.value?.path(handle) ?? [], stage, chosen);
  }
  for (const key of timeline.keys) {
    const at = key.position && stage.project(key.position);
    if (at) diamond(pen, at, key.handle === state.selected.value, key.frame === frame.value);
  }
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

export function diamond(pen: CanvasRenderingContext2D, at: Vec2, chosen: boolean, now: boolean, picked = false): void {
  const colours = palette.value;
  const size = now ? 7 : 5.5;
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
