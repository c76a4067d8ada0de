/** The markers of a take: seen ones solid, filled ones open, with a ring as wide as they are uncertain. */
import { frame } from "../shown";
import * as state from "../state";
import { palette } from "../theme";
import { dot, label, ring } from "./handle_marks";
import type { Stage } from "./stage";

export function paintMarkers(pen: CanvasRenderingContext2D, stage: Stage): void {
  const take = state.take.value;
  if (state.workspace.value !== "capture" || !take) return;
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
