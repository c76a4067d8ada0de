/** The markers of a performance or a take: seen ones solid, filled ones open, with a ring as wide as they are uncertain. */
import { type Vec3, floats } from "../arrays";
import { frame } from "../shown";
import * as state from "../state";
import { palette } from "../theme";
import { dot, label, ring } from "./handle_marks";
import type { TakeData } from "../take";
import type { Stage } from "./stage";

export function paintMarkers(pen: CanvasRenderingContext2D, stage: Stage): void {
  if (state.workspace.value !== "capture") return;
  if (state.isLive.value) paintLive(pen, stage);
  else if (state.take.value) paintTake(pen, stage, state.take.value);
}

/** What the performer's markers are at this moment. */
function paintLive(pen: CanvasRenderingContext2D, stage: Stage): void {
  const { good } = palette.value;
  const places = floats(state.performing.value?.places ?? new Uint8Array());
  for (let at = 0; at + 2 < places.length; at += 3) {
    const [x, y, z] = places.subarray(at, at + 3) as unknown as Vec3;
    const pixel = Number.isFinite(x) && stage.project([x, y, z]);
    if (pixel) dot(pen, pixel, 4, good, good);
  }
}

function paintTake(pen: CanvasRenderingContext2D, stage: Stage, take: TakeData): void {
  const colours = palette.value;
  take.markers.forEach((name, number) => {
    const marker = take.marker(frame.value, number);
    const at = marker && stage.project(marker.position);
    if (!marker || !at) return;
    if (name === state.selectedMarker.value) {
      ring(pen, at, 9, colours.accent, 2);
      label(pen, [at[0] + 13, at[1] - 8], name, colours.ink);
    }
    if (marker.seen) {
      dot(pen, at, 3.5, colours.good, colours.good);
      return;
    }
    pen.globalAlpha = 0.7;
    ring(pen, at, Math.max((2 * marker.deviation) / stage.pixelAt(marker.position), 5), colours.warm, 1.25);
    pen.globalAlpha = 1;
    dot(pen, at, 2.5, colours.surface, colours.warm);
  });
}
