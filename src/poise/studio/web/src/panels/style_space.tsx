/** The style's space: how likely every place is, where the recorded poses lie; drag in it and the body follows. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type Vec2, bytesAs, floats } from "../arrays";
import type { LatentMap } from "../messages";
import * as state from "../state";
import { dragLatent, hoverLatent, say } from "../studio";
import { palette, theme } from "../theme";
import { heatImage } from "./heat";
import { type Layout, inside, layoutOf } from "./latent_layout";
import { Section, Toggle, useCanvas } from "./ui";

const STEP = 0.02; // of the map's width, for the arrow keys
const dragging = signal(false);
/** The phase at the front of a cylinder. */
const front = signal(0);

export function StyleSpace(): JSX.Element | null {
  const model = state.model.value;
  const id = model?.latent ? model.id : null;
  useEffect(() => {
    if (id) say({ type: "askLatentMap", model: id });
  }, [id]);
  if (!id) return null;
  const map = state.latentMap.value?.model === id ? state.latentMap.value : null;
  return (
    <Section
      title={map?.cylinder ? "Style space (cylinder)" : "Style space"}
      aside={<span class="quiet">{model?.name}</span>}
    >
      {map ? <Map map={map} /> : <div class="map empty">Drawing the map…</div>}
      <Toggle
        label="Keep handles where they are"
        hint="Dragging here changes the pose only as far as pinned handles allow"
        on={state.holdHandles.value}
        onChange={(on) => (state.holdHandles.value = on)}
      />
    </Section>
  );
}

function Map({ map }: { map: LatentMap }): JSX.Element {
  const dark = theme.value === "dark";
  const image = useMemo(() => heatImage(map, dark), [map, dark]);
  const backdrop = useRef<Backdrop | null>(null);
  const canvas = useCanvas((pen, width, height) => {
    const layout = layoutOf(map, width, height, front.value);
    const drawn = [image, width, height, front.value];
    if (!drawn.every((part, number) => part === backdrop.current?.of[number]))
      backdrop.current = { of: drawn, picture: draw(map, layout, image, width, height) };
    pen.drawImage(backdrop.current!.picture, 0, 0, width, height);
    paintPlace(pen, map, layout);
  });
  void [state.latentPlace.value, state.latentCursor.value, front.value, palette.value];
  return (
    <canvas
      ref={canvas}
      class="map"
      tabIndex={0}
      role="application"
      aria-label="Style space: drag to change the pose; arrow keys move through it"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        dragging.value = true;
        state.latentCursor.value = null;
        dragLatent(placeOf(event, map), false);
      }}
      onPointerMove={(event) => (dragging.value ? dragLatent(placeOf(event, map), false) : hover(placeOf(event, map)))}
      onPointerUp={(event) => {
        dragging.value = false;
        const place = placeOf(event, map);
        dragLatent(place, true);
        front.value = place[0];
      }}
      onWheel={(event) => turn(event, map)}
      onPointerLeave={() => (state.latentCursor.value = null)}
      onKeyDown={(event) => step(event, map)}
    />
  );
}

/** The map with its points, which is drawn again only when it has changed: a cylinder is dear to draw. */
interface Backdrop {
  readonly of: readonly unknown[];
  readonly picture: HTMLCanvasElement;
}

function draw(
  map: LatentMap,
  layout: Layout,
  image: HTMLCanvasElement,
  width: number,
  height: number,
): HTMLCanvasElement {
  const picture = document.createElement("canvas");
  const ratio = Math.min(devicePixelRatio, 2);
  Object.assign(picture, { width: width * ratio, height: height * ratio });
  const pen = picture.getContext("2d")!;
  pen.scale(ratio, ratio);
  layout.paint(pen, image);
  paintPoints(pen, map, layout);
  return picture;
}

function hover(place: Vec2): void {
  state.latentCursor.value = place;
  hoverLatent(place);
}

/** The wheel turns a cylinder. */
function turn(event: WheelEvent, map: LatentMap): void {
  if (!map.cylinder) return;
  event.preventDefault();
  const [left, right] = map.extent;
  front.value += (Math.sign(event.deltaY || event.deltaX) * (right - left)) / 24;
}

function step(event: KeyboardEvent, map: LatentMap): void {
  const moves: Record<string, Vec2> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const move = moves[event.key];
  const from = state.latentPlace.value;
  if (!move || !from) return;
  event.preventDefault();
  event.stopPropagation();
  const [left, right, bottom, top] = map.extent;
  const place = inside([from[0] + move[0] * STEP * (right - left), from[1] + move[1] * STEP * (top - bottom)], map);
  front.value = place[0];
  dragLatent(place, true);
}

function placeOf(event: PointerEvent, map: LatentMap): Vec2 {
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  return layoutOf(map, box.width, box.height, front.value).place([event.clientX - box.left, event.clientY - box.top]);
}

function paintPoints(pen: CanvasRenderingContext2D, map: LatentMap, layout: Layout): void {
  const points = floats(map.points);
  const active = bytesAs(Uint8Array, map.active);
  pen.fillStyle = palette.value.ink;
  active.forEach((isActive, number) => {
    const at = layout.pixel([points[number * 2]!, points[number * 2 + 1]!]);
    if (!at) return;
    pen.globalAlpha = isActive ? 0.9 : 0.35;
    pen.beginPath();
    pen.arc(at[0], at[1], isActive ? 1.8 : 1.1, 0, 2 * Math.PI);
    pen.fill();
  });
  pen.globalAlpha = 1;
}

function paintPlace(pen: CanvasRenderingContext2D, map: LatentMap, layout: Layout): void {
  const { accent, surface } = palette.value;
  const here = state.latentPlace.value && layout.pixel(inside(state.latentPlace.value, map));
  const cursor = state.latentCursor.value && layout.pixel(state.latentCursor.value);
  if (cursor) mark(pen, cursor, 4, "transparent", accent);
  if (here) mark(pen, here, 6, accent, surface);
}

function mark(pen: CanvasRenderingContext2D, [x, y]: Vec2, radius: number, fill: string, edge: string): void {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fillStyle = fill;
  pen.fill();
  pen.lineWidth = 2;
  pen.strokeStyle = edge;
  pen.stroke();
}
