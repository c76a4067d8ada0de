/** Photo: mark a few joints in a picture; the body follows, over the picture and from the side. */
import { effect, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { ImagePlus, Trash2, X } from "lucide-preact";
import type { Vec2 } from "../arrays";
import * as state from "../state";
import { movePoint, say } from "../studio";
import { palette } from "../theme";
import { type Arriving, arriving } from "../upload";
import { Alternatives } from "./alternatives";
import { Button, IconButton, PickFiles, Section, useCanvas } from "./ui";

/** Joints worth marking first, in the order in which they are asked for. */
const ASKED = [
  "head",
  "left_hand",
  "right_hand",
  "left_foot",
  "right_foot",
  "pelvis",
  "left_forearm",
  "right_forearm",
  "left_shin",
  "right_shin",
  "left_upper_arm",
  "right_upper_arm",
  "chest",
];
const ENOUGH = 5; // points after which more are a choice
const REACH = 14; // pixels

const picture = signal<ImageBitmap | null>(null);
const asked = signal<string | null>(null);
const held = signal<string | null>(null);

effect(() => {
  if (!state.scene.value?.photo) picture.value = null;
});

export async function openPhoto(file: Arriving): Promise<void> {
  const image = await createImageBitmap(await file.read()).catch(() => null);
  if (!image) {
    state.notify(`${file.name} is not a picture this browser can read; PNG, JPEG and WebP work.`);
    return;
  }
  const id = await file.send();
  if (!id) return;
  say({ type: "openPhoto", upload: id, width: image.width, height: image.height });
  picture.value = image;
  state.workspace.value = "photo";
}

function marked(): Map<string, Vec2> {
  return new Map((state.scene.value?.photo?.points ?? []).map(({ joint, pixel }) => [joint, pixel]));
}

function nextJoint(): string | null {
  const done = marked();
  if (asked.value && !done.has(asked.value)) return asked.value;
  const joints = state.body.value?.joints ?? [];
  return (
    ASKED.flatMap((role) => joints.find((joint) => joint.role === role && !done.has(joint.name))?.name ?? [])[0] ?? null
  );
}

export function PhotoPanel(): JSX.Element {
  const points = marked();
  const next = nextJoint();
  return (
    <>
      <Section title="Photo">
        {!picture.value && (
          <p class="empty">
            Drop a picture of a person here. The studio finds the body. Move points that are wrong, or mark your own.
          </p>
        )}
        <div class="row">
          <PickFiles
            label="Open a picture"
            icon={ImagePlus}
            accept="image/png,image/jpeg,image/webp"
            kind={picture.value ? "plain" : "primary"}
            onFiles={(files) => files.slice(0, 1).forEach((file) => void openPhoto(arriving(file)))}
          />
          {picture.value && <Button label="Put away" icon={X} onPress={() => say({ type: "closePhoto" })} />}
        </div>
      </Section>
      {picture.value && <Alternatives />}
      {picture.value && (
        <Section title="Points" aside={<span class="quiet">{points.size} marked</span>}>
          {next && (
            <p class="ask">
              {points.size < ENOUGH ? "Click the " : "Enough points. Continue with the "}
              <strong>{state.labelOf(next)}</strong>{" "}
              {points.size < ENOUGH ? "in the picture." : "where the body is not right yet."}
            </p>
          )}
          <ul class="markers">
            {(state.body.value?.joints ?? [])
              .filter((joint) => joint.role)
              .map((joint) => (
                <li key={joint.name} class={joint.name === next ? "chosen" : ""}>
                  <button type="button" class="name" onClick={() => (asked.value = joint.name)}>
                    <span class={`bead ${points.has(joint.name) ? "hard" : "gone"}`} aria-hidden="true" />
                    {state.jointLabel(joint)}
                  </button>
                  {points.has(joint.name) && (
                    <IconButton
                      label={`Remove ${state.jointLabel(joint)}`}
                      icon={Trash2}
                      onPress={() => say({ type: "removePoint", joint: joint.name })}
                    />
                  )}
                </li>
              ))}
          </ul>
        </Section>
      )}
    </>
  );
}

/** Where the picture lies on its canvas: whole, centred. */
function fit(width: number, height: number, image: ImageBitmap): { scale: number; left: number; top: number } {
  const scale = Math.min(width / image.width, height / image.height);
  return { scale, left: (width - image.width * scale) / 2, top: (height - image.height * scale) / 2 };
}

export function PhotoStage(): JSX.Element {
  const dropped = useRef<Vec2 | null>(null);
  const canvas = useCanvas((pen, width, height) => {
    const image = picture.value;
    if (!image) return;
    const { scale, left, top } = fit(width, height, image);
    pen.drawImage(image, left, top, image.width * scale, image.height * scale);
    const onCanvas = ([x, y]: Vec2): Vec2 => [left + x * scale, top + y * scale];
    paintSkeleton(pen, onCanvas);
    marked().forEach((pixel, joint) => paintPoint(pen, onCanvas(pixel), joint));
  });
  void [state.scene.value, state.photoPixels.value, held.value, palette.value];
  const pixelOf = (event: PointerEvent): Vec2 => {
    const box = canvas.current!.getBoundingClientRect();
    const { scale, left, top } = fit(box.width, box.height, picture.value!);
    return [(event.clientX - box.left - left) / scale, (event.clientY - box.top - top) / scale];
  };
  return (
    <div class="photo-stage">
      {!picture.value && <p class="drop-here">Drop a picture here</p>}
      <canvas
        ref={canvas}
        role="application"
        aria-label="Picture: click to mark the joint that is asked for, drag points to move them"
        onPointerDown={(event) => {
          if (!picture.value) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          const pixel = pixelOf(event);
          held.value = pointNear(pixel, picture.value, canvas.current!) ?? nextJoint();
          if (held.value) movePoint(held.value, pixel, false);
          dropped.current = pixel;
        }}
        onPointerMove={(event) => {
          if (held.value) movePoint(held.value, pixelOf(event), false);
        }}
        onPointerUp={(event) => {
          if (held.value) movePoint(held.value, pixelOf(event), true);
          held.value = null;
        }}
      />
    </div>
  );
}

function pointNear(pixel: Vec2, image: ImageBitmap, canvas: HTMLCanvasElement): string | null {
  const { scale } = fit(canvas.clientWidth, canvas.clientHeight, image);
  let best: string | null = null;
  let shortest = REACH / scale;
  marked().forEach((at, joint) => {
    const away = Math.hypot(at[0] - pixel[0], at[1] - pixel[1]);
    if (away < shortest) [best, shortest] = [joint, away];
  });
  return best;
}

function paintSkeleton(pen: CanvasRenderingContext2D, onCanvas: (pixel: Vec2) => Vec2): void {
  const pixels = state.photoPixels.value;
  if (!pixels?.length || !marked().size) return;
  const at = (joint: number): Vec2 => onCanvas([pixels[joint * 2]!, pixels[joint * 2 + 1]!]);
  pen.lineCap = "round";
  for (const [width, colour] of [
    [7, palette.value.surface],
    [4, palette.value.accent],
  ] as const) {
    pen.globalAlpha = 0.8;
    pen.lineWidth = width;
    pen.strokeStyle = colour;
    (state.body.value?.joints ?? []).forEach((joint, number) => {
      if (joint.parent < 0) return;
      pen.beginPath();
      pen.moveTo(...at(joint.parent));
      pen.lineTo(...at(number));
      pen.stroke();
    });
  }
  pen.globalAlpha = 1;
}

function paintPoint(pen: CanvasRenderingContext2D, [x, y]: Vec2, joint: string): void {
  const { warm, surface, ink } = palette.value;
  pen.beginPath();
  pen.arc(x, y, held.value === joint ? 8 : 6, 0, 2 * Math.PI);
  pen.fillStyle = warm;
  pen.fill();
  pen.lineWidth = 2;
  pen.strokeStyle = surface;
  pen.stroke();
  pen.font = "600 12px 'Inter Variable', sans-serif";
  pen.lineWidth = 4;
  pen.strokeText(state.labelOf(joint), x + 11, y - 7);
  pen.fillStyle = ink;
  pen.fillText(state.labelOf(joint), x + 11, y - 7);
}
