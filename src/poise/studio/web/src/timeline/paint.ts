/** Drawing the timeline. */
import { clock, frame } from "../shown";
import { diamond } from "../stage/trajectories";
import * as state from "../state";
import { palette } from "../theme";
import { type Bar, LANE, type Lane, RULER, type Scale, inView, isSelected } from "./lanes";
import { keyBox, keysMoved } from "./pointing";

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000, 12000]; // frames between labels
const LABEL_ROOM = 92; // pixels

export function paintTimeline(
  pen: CanvasRenderingContext2D,
  lanes: readonly Lane[],
  scale: Scale,
  height: number,
): void {
  paintRange(pen, scale, height);
  paintRuler(pen, scale, height);
  lanes.forEach((lane, number) => paintLane(pen, lane, RULER + number * LANE, scale));
  paintUnmet(pen, scale);
  paintKeyBox(pen, scale);
  paintHead(pen, scale, height);
}

export function paintRange(pen: CanvasRenderingContext2D, scale: Scale, height: number): void {
  const range = state.range.value;
  if (!range) return;
  pen.fillStyle = palette.value.accent;
  pen.globalAlpha = 0.13;
  pen.fillRect(scale.x(range[0]), 0, scale.x(range[1]) - scale.x(range[0]), height);
  pen.globalAlpha = 1;
}

export function paintRuler(pen: CanvasRenderingContext2D, scale: Scale, height: number): void {
  const colours = palette.value;
  const perFrame = scale.x(1) - scale.x(0);
  const step = STEPS.find((frames) => frames * perFrame >= LABEL_ROOM) ?? 12000;
  pen.font = "11px 'Inter Variable', sans-serif";
  pen.textBaseline = "middle";
  const [first, last] = inView();
  for (let at = Math.floor(first / step) * step; at <= Math.min(last, scale.frames - 1); at += step) {
    const x = Math.round(scale.x(at)) + 0.5;
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, RULER - 7);
    pen.lineTo(x, height);
    pen.stroke();
    pen.fillStyle = colours.quiet;
    pen.fillText(`${at}`, x + 4, RULER / 2);
    const seconds = `${(at / clock.value.fps).toFixed(1)} s`;
    pen.globalAlpha = 0.6;
    pen.fillText(seconds, x + 8 + pen.measureText(`${at}`).width, RULER / 2);
    pen.globalAlpha = 1;
  }
}

function paintLane(pen: CanvasRenderingContext2D, lane: Lane, top: number, scale: Scale): void {
  const colours = palette.value;
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(0, top + 0.5);
  pen.lineTo(scale.width, top + 0.5);
  pen.stroke();
  for (const bar of lane.bars) paintBar(pen, bar, lane, top, scale);
  for (const key of lane.keys) {
    const picked = lane.handle !== undefined && isSelected(lane.handle, key);
    const at = picked ? key + keysMoved.value : key;
    const shape = { chosen: lane.chosen || picked, now: at === frame.value, picked, small: lane.small?.includes(key) };
    diamond(pen, [scale.x(at), top + LANE / 2], shape);
  }
}

function paintBar(pen: CanvasRenderingContext2D, bar: Bar, lane: Lane, top: number, scale: Scale): void {
  const colours = palette.value;
  const { accent, good, danger, warm, quiet } = colours;
  const tint = { pin: accent, style: good, gap: danger, filled: warm, contact: quiet }[bar.kind];
  const x = scale.x(bar.first - (bar.kind === "gap" || bar.kind === "filled" ? 0.5 : 0));
  const width = Math.max(scale.x(bar.last + (bar.kind === "gap" || bar.kind === "filled" ? 0.5 : 0)) - x, 2);
  pen.fillStyle = tint;
  const { part, first } = state.selectedContact.value ?? { part: "", first: -1 };
  const chosen = lane.name === `contact ${part}` && bar.first === first;
  pen.globalAlpha = bar.kind === "style" || (bar.kind === "contact" && !chosen) ? 0.22 : 0.5;
  pen.beginPath();
  pen.roundRect(x, top + 5, width, LANE - 9, 4);
  pen.fill();
  pen.globalAlpha = 1;
  if (!bar.words) return;
  pen.save();
  pen.beginPath();
  pen.rect(x, top, width, LANE);
  pen.clip();
  pen.fillStyle = colours.ink;
  pen.fillText(bar.words, x + 8, top + LANE / 2 + 1);
  pen.restore();
}

function paintKeyBox(pen: CanvasRenderingContext2D, scale: Scale): void {
  if (!keyBox.value) return;
  const [[from, top], [to, bottom]] = keyBox.value;
  const [x, y] = [scale.x(Math.min(from, to)), RULER + Math.max(Math.min(top, bottom), 0) * LANE];
  pen.strokeStyle = palette.value.accent;
  pen.lineWidth = 1;
  pen.strokeRect(x, y + 1, Math.abs(scale.x(to) - scale.x(from)), RULER + (Math.max(top, bottom) + 1) * LANE - y - 2);
}

/** Frames whose hard targets are missed: a red line under the ruler. */
function paintUnmet(pen: CanvasRenderingContext2D, scale: Scale): void {
  pen.fillStyle = palette.value.danger;
  for (const missed of state.motion.value?.unmet ?? [])
    pen.fillRect(scale.x(missed - 0.5), RULER - 3, Math.max(scale.x(1) - scale.x(0), 1.5), 3);
}

export function paintHead(pen: CanvasRenderingContext2D, scale: Scale, height: number): void {
  const { accent, surface } = palette.value;
  const x = scale.x(Math.min(frame.value, scale.frames - 1));
  if (x < 0 || x > scale.width) return;
  pen.fillStyle = accent;
  pen.fillRect(x - 0.75, RULER - 4, 1.5, height);
  const words = String(frame.value);
  pen.font = "600 11px 'Inter Variable', sans-serif";
  const width = pen.measureText(words).width + 12;
  const left = Math.min(Math.max(x - width / 2, 0), scale.width - width);
  pen.fillStyle = surface;
  pen.fillRect(left - 4, 0, width + 44, RULER - 8);
  pen.fillStyle = accent;
  pen.beginPath();
  pen.roundRect(left, 3, width, 17, 5);
  pen.fill();
  pen.fillStyle = surface;
  pen.fillText(words, left + 6, 12);
}
