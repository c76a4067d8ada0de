/** The graph editor: where the selected handle or joint is, or how it is turned, over time; its keys are pulled there. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { type Vec3, clamp } from "../arrays";
import type { Key } from "../messages";
import { clock, frame, scrub } from "../shown";
import * as state from "../state";
import { dragKey, say, turnJoints } from "../studio";
import { palette } from "../theme";
import { quaternionFromDegrees, ratesFromSpin, spinFromRates, threeQuaternion } from "../turns";
import { Segmented, useCanvas } from "../panels/ui";
import { type Curves, type Knot, type Quantity, curvesOf, parentTurn } from "./curves";
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
const LEAST: Record<Quantity, number> = { position: 0.05, rotation: 5 }; // that the graph is high at least, to either side
const MOST: Record<Quantity, number> = { position: 900, rotation: 3600 };
const STEEPEST: Record<Quantity, number> = { position: 100, rotation: 3600 }; // a second
const ARM = 44; // pixels that a tangent reaches to either side of its key
const SHORTEST_ARM = 10;

interface Hold {
  readonly knot: Knot;
  readonly axis: number;
  readonly from: readonly [number, number];
  /** Of the graph when it was pressed: the tools of a key appear then, and push it down. */
  readonly top: number;
  readonly heights: Heights;
  readonly parent: ReturnType<typeof parentTurn>;
  /** Once the hand has gone far enough it moves the key in value or in time, not in both; or it pulls a tangent's end. */
  way: "value" | "time" | "tangent" | null;
}

let hold: Hold | null = null;
const quantity = signal<Quantity>("position");
const shownAxes = signal<readonly boolean[]>([true, true, true]);

export function Graph(): JSX.Element {
  const canvas = useCanvas((pen, width, height) => paint(pen, width, height));
  void [frame.value, palette.value, state.motion.value, state.selectedKeys.value, state.range.value, state.scene.value];
  void [inView(), shownAxes.value];
  const name = state.selectedJoints.value[0];
  return (
    <div class="lanes graph">
      <div class="lane-names graph-names" role="group" aria-label="Curves">
        <strong>{name ? state.labelOf(name) : "nothing selected"}</strong>
        <Segmented
          label="What the curves show"
          value={quantity.value}
          choices={[
            { value: "position", label: "Place", hint: "Where it is, in metres" },
            { value: "rotation", label: "Turn", hint: "How it is turned, in degrees" },
          ]}
          onChoose={(value) => (quantity.value = value)}
        />
        <div class="row">
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
    const half = Math.max(values.length ? Math.max(...values) - middle : 0, LEAST[quantity.value]);
    [this.low, this.high] = [middle - half, middle + half];
  }

  y(value: number): number {
    const share = (value - this.low) / (this.high - this.low);
    return this.height - ROOM - share * (this.height - RULER - 2 * ROOM);
  }

  /** Metres or degrees of a pixel. */
  get pixel(): number {
    return (this.high - this.low) / (this.height - RULER - 2 * ROOM);
  }
}

// --- drawing --------------------------------------------------------------------------------------------------------

function paint(pen: CanvasRenderingContext2D, width: number, height: number): void {
  const scale = new Scale(clock.value.frames, width);
  const curves = curvesOf(quantity.value);
  const heights = hold?.heights ?? new Heights(curves.points, height);
  paintRange(pen, scale, height);
  paintRuler(pen, scale, height);
  AXES.forEach(({ colour }, axis) => {
    if (!shownAxes.value[axis]) return;
    paintCurve(pen, curves.points, axis, colour, scale, heights);
    for (const knot of curves.knots) paintKnot(pen, knot, axis, colour, scale, heights);
    for (const arm of armsOf(curves, axis, scale, heights)) paintArm(pen, arm, colour);
  });
  if (!curves.points.length) {
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

function paintKnot(
  pen: CanvasRenderingContext2D,
  knot: Knot,
  axis: number,
  colour: string,
  scale: Scale,
  heights: Heights,
): void {
  const selected = isSelected(knot.key?.handle ?? null, knot.frame);
  disc(pen, [scale.x(knot.frame), heights.y(knot.value[axis]!)], selected ? 6 : 4.5, selected ? null : colour);
}

function paintArm(pen: CanvasRenderingContext2D, { from, to }: Arm, colour: string): void {
  pen.strokeStyle = palette.value.warm;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(...from);
  pen.lineTo(...to);
  pen.stroke();
  disc(pen, to, 3.5, colour);
}

function disc(
  pen: CanvasRenderingContext2D,
  at: readonly [number, number],
  radius: number,
  colour: string | null,
): void {
  pen.beginPath();
  pen.arc(...at, radius, 0, 7);
  pen.fillStyle = colour ?? palette.value.warm;
  pen.fill();
  pen.lineWidth = 1.5;
  pen.strokeStyle = palette.value.surface;
  pen.stroke();
}

// --- tangents -------------------------------------------------------------------------------------------------------

/** One end of a selected key's tangent. */
interface Arm {
  readonly knot: Knot;
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
}

/** Only in motions made of keys does a curve go through them; over a recording keys fade. */
function armsOf(curves: Curves, axis: number, scale: Scale, heights: Heights): Arm[] {
  if (state.scene.value?.timeline.clip) return [];
  const chosen = curves.knots.filter(({ key, frame: at }) => key && isSelected(key.handle, at));
  return chosen.flatMap((knot) => {
    const from = [scale.x(knot.frame), heights.y(knot.value[axis]!)] as const;
    const slope = (tangentOf(knot, curves.points)[axis]! / clock.value.fps / heights.pixel) * framesOf(scale);
    return [-1, 1].map((side) => ({ knot, from, to: [from[0] + side * ARM, from[1] - side * ARM * slope] as const }));
  });
}

/** Frames of a pixel. */
const framesOf = (scale: Scale): number => scale.at(1) - scale.at(0);

/** A key's own velocity, or that of the curve through it, in metres or degrees a second. */
function tangentOf({ frame: at, key, value }: Knot, points: readonly Vec3[]): Vec3 {
  if (quantity.value === "position" && key?.tangent) return key.tangent;
  if (quantity.value === "rotation" && key?.spin) return ratesFromSpin(value, key.spin);
  const [before, after] = [Math.max(at - 1, 0), Math.min(at + 1, points.length - 1)];
  const seconds = (after - before) / clock.value.fps;
  return [0, 1, 2].map((axis) => {
    const rise = points[after]![axis]! - points[before]![axis]!;
    return seconds > 0 && Number.isFinite(rise) ? rise / seconds : 0;
  }) as Vec3;
}

// --- the pointer ----------------------------------------------------------------------------------------------------

function press(event: PointerEvent): void {
  const canvas = event.currentTarget as HTMLElement;
  canvas.setPointerCapture(event.pointerId);
  const [scale, heights, x, y] = placed(event);
  const curves = curvesOf(quantity.value);
  const away = (to: readonly [number, number]): number => Math.hypot(to[0] - x, to[1] - y);
  const found = AXES.flatMap((_, axis) => {
    if (!shownAxes.value[axis]) return [];
    const knots = curves.knots.map((knot) => ({
      ...{ knot, axis, way: null },
      away: away([scale.x(knot.frame), heights.y(knot.value[axis]!)]),
    }));
    const arms = armsOf(curves, axis, scale, heights).map(({ knot, to }) => ({
      ...{ knot, axis, way: "tangent" as const },
      away: away(to),
    }));
    return [...knots, ...arms];
  });
  const nearest = found.sort((a, b) => a.away - b.away)[0];
  if (!nearest || nearest.away >= REACH) return scrub(scale.frame(x), false);
  const { knot, axis, way } = nearest;
  hold = { knot, axis, from: [x, y], top: event.clientY - y, heights, parent: parentTurn(knot.frame), way };
  state.selectedKeys.value = [{ handle: knot.key?.handle ?? null, frame: knot.frame }];
  if (!knot.key) scrub(knot.frame, true); // the whole body is turned at the frame that is shown
}

function pull(event: PointerEvent, last: boolean): void {
  const now = hold;
  const [scale, , x, y] = placed(event);
  if (!now) {
    if (event.buttons || last) scrub(scale.frame(x), last);
    return;
  }
  const [right, down] = [x - now.from[0], y - now.from[1]];
  if (!now.way && Math.hypot(right, down) > 4) now.way = Math.abs(right) > Math.abs(down) ? "time" : "value";
  if (last) hold = null;
  if (now.way === "value") pullValue(now, -down * now.heights.pixel, last);
  if (now.way === "tangent") pullTangent(now, scale, x, y, last);
  if (now.way === "time" && last) pullTime(now.knot, scale.frame(x) - now.knot.frame);
}

function pullValue({ knot, axis, parent }: Hold, by: number, last: boolean): void {
  const most = MOST[quantity.value];
  const value = knot.value.map((old, k) => clamp(k === axis ? old + by : old, -most, most)) as Vec3;
  if (knot.key && quantity.value === "position") dragKey({ ...knot.key, position: value }, last);
  else if (knot.key) dragKey({ ...knot.key, rotation: quaternionFromDegrees(value) }, last);
  else {
    const [from, to] = [knot.value, value].map((degrees) => threeQuaternion(quaternionFromDegrees(degrees)));
    const turn = parent.clone().multiply(to!).multiply(from!.invert()).multiply(parent.clone().invert());
    turnJoints(state.selectedJoints.value.slice(0, 1), [turn.w, turn.x, turn.y, turn.z], last, true);
  }
}

function pullTangent({ knot, axis, heights }: Hold, scale: Scale, x: number, y: number, last: boolean): void {
  const right = x - scale.x(knot.frame);
  const seconds = (Math.sign(right || 1) * Math.max(Math.abs(right), SHORTEST_ARM) * framesOf(scale)) / clock.value.fps;
  const rise = (heights.y(knot.value[axis]!) - y) * heights.pixel;
  const most = STEEPEST[quantity.value];
  const own = tangentOf(knot, curvesOf(quantity.value).points);
  const rates = own.map((old, k) => clamp(k === axis ? rise / seconds : old, -most, most)) as Vec3;
  const key = knot.key as Key;
  if (quantity.value === "position") dragKey({ ...key, tangent: rates }, last);
  else dragKey({ ...key, spin: spinFromRates(knot.value, rates) }, last);
}

function pullTime({ key, frame: at }: Knot, by: number): void {
  if (!by) return;
  const handle = key?.handle ?? null;
  say({ type: "moveKeys", keys: [{ handle, frame: at }], by });
  state.selectedKeys.value = [{ handle, frame: at + by }];
}

function placed(event: PointerEvent): [Scale, Heights, number, number] {
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  const scale = new Scale(clock.value.frames, box.width);
  const heights = new Heights(curvesOf(quantity.value).points, box.height);
  return [scale, heights, event.clientX - box.left, event.clientY - (hold?.top ?? box.top)];
}
