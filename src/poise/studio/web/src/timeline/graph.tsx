/** The graph editor: where the selected handle or joint is over time, X, Y and Z; its keys are moved up, down and along. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { type Vec3, clamp } from "../arrays";
import type { Key } from "../messages";
import { clock, frame, scrub } from "../shown";
import * as state from "../state";
import { dragKey, say } from "../studio";
import { palette } from "../theme";
import { useCanvas } from "../panels/ui";
import { RULER, Scale, inView, isSelected } from "./lanes";
import { paintHead, paintRange, paintRuler } from "./paint";
import { wheel } from "./pointing";

const AXES = [
  { name: "X", colour: "#d4503f" },
  { name: "Y", colour: "#5a9a3c" },
  { name: "Z", colour: "#3f74d6" },
] as const;
const ROOM = 12; // pixels above and below the curves
const REACH = 9;
const LEAST = 0.05; // metres that the graph is high at least

interface Hold {
  readonly key: Key;
  readonly axis: number;
  readonly from: readonly [number, number];
  /** Once the hand has gone far enough it moves the key in value or in time, not in both. */
  way: "value" | "time" | null;
}

const hold = signal<Hold | null>(null);
const shownAxes = signal<readonly boolean[]>([true, true, true]);

export function Graph(): JSX.Element {
  const canvas = useCanvas((pen, width, height) => paint(pen, width, height));
  void [frame.value, palette.value, state.motion.value, state.selectedKeys.value, state.range.value, state.scene.value];
  void [inView(), shownAxes.value];
  const name = state.selectedJoints.value[0];
  return (
    <div class="lanes graph">
      <div class="lane-names graph-names" role="group" aria-label="Axes">
        <strong>{name ? state.labelOf(name) : "nothing selected"}</strong>
        {AXES.map(({ name: axis, colour }, number) => (
          <label key={axis} style={{ color: colour }}>
            <input
              type="checkbox"
              checked={shownAxes.value[number]}
              onChange={() => (shownAxes.value = shownAxes.value.map((on, k) => (k === number ? !on : on)))}
            />
            {axis}
          </label>
        ))}
      </div>
      <canvas
        ref={canvas}
        class="lane-canvas"
        style={{ height: "150px" }}
        aria-label="Graph: drag keys up and down, or along"
        onPointerDown={press}
        onPointerMove={(event) => pull(event, false)}
        onPointerUp={(event) => pull(event, true)}
        onWheel={wheel}
      />
    </div>
  );
}

/** The way of the selected handle or joint, in metres. */
function way(): Vec3[] {
  const id = state.selected.value;
  const motion = state.motion.value;
  if (!id || !motion) return [];
  const path = motion.path(id);
  return path.length ? path : motion.way(state.jointNumber(state.selectedJoints.value[0] ?? ""));
}

function keysShown(): Key[] {
  const id = state.selected.value;
  return (state.scene.value?.timeline.keys ?? []).filter((key) => key.handle === id && key.position);
}

class Heights {
  private readonly low: number;
  private readonly high: number;

  constructor(
    points: readonly Vec3[],
    private readonly height: number,
  ) {
    const [first, last] = inView();
    const seen = points.slice(Math.floor(first), Math.ceil(last) + 1).flat();
    const values = seen.filter((value, number) => Number.isFinite(value) && shownAxes.value[number % 3]);
    const low = Math.min(...values);
    const middle = values.length ? (low + Math.max(...values)) / 2 : 0;
    const half = Math.max(values.length ? Math.max(...values) - middle : 0, LEAST);
    [this.low, this.high] = [middle - half, middle + half];
  }

  y(value: number): number {
    const share = (value - this.low) / (this.high - this.low);
    return this.height - ROOM - share * (this.height - RULER - 2 * ROOM);
  }

  /** Metres of a pixel. */
  get pixel(): number {
    return (this.high - this.low) / (this.height - RULER - 2 * ROOM);
  }
}

function paint(pen: CanvasRenderingContext2D, width: number, height: number): void {
  const scale = new Scale(clock.value.frames, width);
  const points = way();
  const heights = new Heights(points, height);
  paintRange(pen, scale, height);
  paintRuler(pen, scale, height);
  AXES.forEach(({ colour }, axis) => {
    if (!shownAxes.value[axis]) return;
    paintCurve(pen, points, axis, colour, scale, heights);
    for (const key of keysShown()) paintKey(pen, key, axis, colour, scale, heights);
  });
  if (!points.length) {
    pen.fillStyle = palette.value.quiet;
    pen.fillText("Select a handle that has keys, or any joint of a motion.", 20, height / 2);
  }
  paintHead(pen, scale, height);
}

function paintCurve(
  pen: CanvasRenderingContext2D,
  points: readonly Vec3[],
  axis: number,
  colour: string,
  scale: Scale,
  heights: Heights,
): void {
  pen.strokeStyle = colour;
  pen.lineWidth = 1.75;
  pen.beginPath();
  points.forEach((point, at) => {
    const value = point[axis]!;
    if (Number.isFinite(value)) pen.lineTo(scale.x(at), heights.y(value));
  });
  pen.stroke();
}

function paintKey(
  pen: CanvasRenderingContext2D,
  key: Key,
  axis: number,
  colour: string,
  scale: Scale,
  heights: Heights,
): void {
  pen.beginPath();
  pen.arc(scale.x(key.frame), heights.y(key.position![axis]!), isSelected(key.handle, key.frame) ? 6 : 4.5, 0, 7);
  pen.fillStyle = isSelected(key.handle, key.frame) ? palette.value.warm : colour;
  pen.fill();
  pen.lineWidth = 1.5;
  pen.strokeStyle = palette.value.surface;
  pen.stroke();
}

function press(event: PointerEvent): void {
  const canvas = event.currentTarget as HTMLElement;
  canvas.setPointerCapture(event.pointerId);
  const [scale, heights, x, y] = placed(event);
  const found = keysShown().flatMap((key) =>
    AXES.map((_, axis) => ({
      key,
      axis,
      away: shownAxes.value[axis] ? Math.hypot(scale.x(key.frame) - x, heights.y(key.position![axis]!) - y) : Infinity,
    })),
  );
  const nearest = found.sort((a, b) => a.away - b.away)[0];
  if (nearest && nearest.away < REACH) {
    const { key, axis } = nearest;
    hold.value = { key, axis, from: [x, y], way: null };
    state.selectedKeys.value = [{ handle: key.handle, frame: key.frame }];
  } else scrub(scale.frame(x), false);
}

function pull(event: PointerEvent, last: boolean): void {
  const now = hold.value;
  const [scale, heights, x, y] = placed(event);
  if (!now) {
    if (event.buttons || last) scrub(scale.frame(x), last);
    return;
  }
  const [right, down] = [x - now.from[0], y - now.from[1]];
  if (!now.way && Math.hypot(right, down) > 4) now.way = Math.abs(right) > Math.abs(down) ? "time" : "value";
  if (now.way === "value") pullValue(now, -down * heights.pixel, last);
  if (now.way === "time" && last) pullTime(now.key, scale.frame(x) - now.key.frame);
  if (last) hold.value = null;
}

function pullValue({ key, axis }: Hold, by: number, last: boolean): void {
  const position = key.position!.map((old, k) => clamp(k === axis ? old + by : old, -900, 900)) as Vec3;
  dragKey({ ...key, position }, last);
}

function pullTime(key: Key, by: number): void {
  if (!by) return;
  say({ type: "moveKeys", keys: [{ handle: key.handle, frame: key.frame }], by });
  state.selectedKeys.value = [{ handle: key.handle, frame: key.frame + by }];
}

function placed(event: PointerEvent): [Scale, Heights, number, number] {
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  const scale = new Scale(clock.value.frames, box.width);
  return [scale, new Heights(way(), box.height), event.clientX - box.left, event.clientY - box.top];
}
