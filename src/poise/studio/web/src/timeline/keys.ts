/** Keys, pins and style changes, as the person sets them at the playhead. */
import { frame } from "../shown";
import * as state from "../state";
import { putKey, say } from "../studio";

export function keySelected(): void {
  const handle = state.selectedHandle.value;
  if (!handle) {
    state.notify("Select a handle first: click a joint on the body.", "info");
    return;
  }
  const place = handle.position;
  putKey({ handle: handle.id, frame: frame.value, position: place, rotation: handle.rotation });
}

export function keyAll(): void {
  for (const handle of state.handles.value) putKey({ handle: handle.id, frame: frame.value, position: handle.position, rotation: handle.rotation });
}

export function pinSelected(length: number): void {
  const handle = state.selectedHandle.value;
  const last = (state.scene.value?.timeline.frames ?? 1) - 1;
  if (handle) say({ type: "putPin", pin: { handle: handle.id, first: frame.value, last: Math.min(frame.value + length, last) } });
}

/** From this frame on, the styles as they are now. */
export function styleHere(): void {
  const scene = state.scene.value;
  if (!scene) return;
  const weights = scene.weights.length ? scene.weights : [{ model: scene.model, weight: 1 }];
  say({ type: "putStyleKey", key: { frame: frame.value, weights } });
}
