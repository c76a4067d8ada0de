/** Keys, pins and style changes, as the person sets them at the playhead. */
import type { SceneHandle } from "../messages";
import { frame } from "../shown";
import { handlePlaces } from "../stage/picking";
import * as state from "../state";
import { putKey, say, turnJoints } from "../studio";

/** The pose as it is, as a key of the whole body. */
export function keyPose(): void {
  const root = state.body.value?.joints[0]?.name;
  if (root) turnJoints([root], [1, 0, 0, 0], true, true);
}

export function keySelected(): void {
  const ids = new Set([state.selected.value, ...state.alsoSelected.value]);
  const chosen = state.handles.value.filter(({ id }) => ids.has(id));
  if (chosen.length) chosen.forEach(keyHandle);
  else keyPose();
}

/** A key where the stage shows the handle. */
function keyHandle(handle: SceneHandle): void {
  const position = handlePlaces().find((place) => place.id === handle.id)?.wanted ?? null;
  putKey({ handle: handle.id, frame: frame.value, position, rotation: handle.rotation });
}

export function pinSelected(length: number): void {
  const handle = state.selectedHandle.value?.id;
  const end = (state.scene.value?.timeline.frames ?? 1) - 1;
  const [first, last] = state.range.value ?? [frame.value, Math.min(frame.value + length, end)];
  if (handle) say({ type: "putPin", pin: { handle, first, last, position: null, ease: state.ease.value } });
}

/** From this frame on, the styles as they are now. */
export function styleHere(): void {
  const scene = state.scene.value;
  if (!scene) return;
  const weights = scene.weights.length ? scene.weights : [{ model: scene.model, weight: 1 }];
  say({ type: "putStyleKey", key: { frame: frame.value, weights } });
}
