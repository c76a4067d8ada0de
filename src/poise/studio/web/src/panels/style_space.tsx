/** The style's space: how likely every place is, where the recorded poses lie; drag in it and the body follows. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type Vec2, bytesAs, clamp, floats } from "../arrays";
import type { LatentMap } from "../messages";
import * as state from "../state";
import { dragLatent, hoverLatent, say } from "../studio";
import { palette } from "../theme";
import { heatImage } from "./heat";
import { Section, Toggle, useCanvas } from "./ui";

const STEP = 0.02; // of the map's width, for the arrow keys
const dragging = signal(false);

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
    const image = useRef<{ of: LatentMap; dark: boolean; image: HTMLCanvasElement } | null>(null);
    const dark = palette.value.background.startsWith("#2");
    if (image.current?.of !== map || image.current.dark !== dark)
        image.current = { of: map, dark, image: heatImage(map, dark) };
    const canvas = useCanvas((pen, width, height) => {
        pen.imageSmoothingEnabled = true;
        pen.drawImage(image.current!.image, 0, 0, width, height);
        paintPoints(pen, map, width, height);
        paintPlace(pen, map, width, height);
    });
    void [state.latentPlace.value, state.latentCursor.value, palette.value];
    return (
        <canvas
            ref={canvas}
            class={`map ${map.cylinder ? "cylinder" : ""}`}
            tabIndex={0}
            role="application"
            aria-label="Style space: drag to change the pose; arrow keys move through it"
            onPointerDown={(event) => {
                event.currentTarget.setPointerCapture(event.pointerId);
                dragging.value = true;
                state.latentCursor.value = null;
                dragLatent(placeOf(event, map), false);
            }}
            onPointerMove={(event) =>
                dragging.value ? dragLatent(placeOf(event, map), false) : hover(placeOf(event, map))
            }
            onPointerUp={(event) => {
                dragging.value = false;
                dragLatent(placeOf(event, map), true);
            }}
            onPointerLeave={() => (state.latentCursor.value = null)}
            onKeyDown={(event) => step(event, map)}
        />
    );
}

function hover(place: Vec2): void {
    state.latentCursor.value = place;
    hoverLatent(place);
}

function step(event: KeyboardEvent, map: LatentMap): void {
    const moves: Record<string, Vec2> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const move = moves[event.key];
    const from = state.latentPlace.value;
    if (!move || !from) return;
    event.preventDefault();
    event.stopPropagation();
    const [left, right, bottom, top] = map.extent;
    dragLatent(
        inside([from[0] + move[0] * STEP * (right - left), from[1] + move[1] * STEP * (top - bottom)], map),
        true,
    );
}

function placeOf(event: PointerEvent, map: LatentMap): Vec2 {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const [left, right, bottom, top] = map.extent;
    const x = left + ((event.clientX - box.left) / box.width) * (right - left);
    return inside([x, top - ((event.clientY - box.top) / box.height) * (top - bottom)], map);
}

function inside([x, y]: Vec2, map: LatentMap): Vec2 {
    const [left, right, bottom, top] = map.extent;
    const around = left + ((((x - left) % (right - left)) + (right - left)) % (right - left));
    return [map.cylinder ? around : clamp(x, left, right), clamp(y, bottom, top)];
}

function pixelOf([x, y]: Vec2, map: LatentMap, width: number, height: number): Vec2 {
    const [left, right, bottom, top] = map.extent;
    return [((x - left) / (right - left)) * width, ((top - y) / (top - bottom)) * height];
}

function paintPoints(pen: CanvasRenderingContext2D, map: LatentMap, width: number, height: number): void {
    const points = floats(map.points);
    const active = bytesAs(Uint8Array, map.active);
    const { ink } = palette.value;
    active.forEach((isActive, number) => {
        const [x, y] = pixelOf([points[number * 2]!, points[number * 2 + 1]!], map, width, height);
        pen.globalAlpha = isActive ? 0.9 : 0.35;
        pen.fillStyle = ink;
        pen.beginPath();
        pen.arc(x, y, isActive ? 1.8 : 1.1, 0, 2 * Math.PI);
        pen.fill();
    });
    pen.globalAlpha = 1;
}

function paintPlace(pen: CanvasRenderingContext2D, map: LatentMap, width: number, height: number): void {
    const { accent, surface } = palette.value;
    const here = state.latentPlace.value;
    const cursor = state.latentCursor.value;
    if (cursor) mark(pen, pixelOf(cursor, map, width, height), 4, "transparent", accent);
    if (here) mark(pen, pixelOf(inside(here, map), map, width, height), 6, accent, surface);
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
