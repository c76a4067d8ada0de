/** What is on the stage just now: the server's pose, or a frame of the timeline while it plays or is scrubbed. */
import { computed, effect, signal } from "@preact/signals";
import { setFrame } from "./studio";
import * as state from "./state";

/** The frame of the timeline under the playhead, ahead of the server's while playing. */
export const frame = signal(0);
const scrubbing = signal(false);

/** Whether the stage shows a frame that the server has not been asked for: handles then follow the body. */
export const ahead = computed(() => state.playing.value || scrubbing.value);

export const shownJoints = computed<Float32Array | null>(() => {
  const played = ahead.value || followsMotion() ? state.motion.value?.at(frame.value) : null;
  return played ?? state.pose.value?.joints ?? null;
});

/** On the timeline a pose that no handle has changed is the motion's, which may have been smoothed since. */
function followsMotion(): boolean {
  return state.workspace.value === "animate" && !state.dragged.value && !state.pose.value?.residuals.length;
}

effect(() => {
  const told = state.scene.value?.timeline.frame;
  if (told !== undefined && !state.playing.peek() && !scrubbing.peek()) frame.value = told;
});

export function scrub(to: number, last: boolean): void {
  const frames = state.scene.value?.timeline.frames ?? 1;
  scrubbing.value = !last;
  frame.value = Math.min(Math.max(Math.round(to), 0), frames - 1);
  setFrame(frame.value, last);
}

let began = 0;
let from = 0;

export function togglePlay(): void {
  if (state.playing.value) stop();
  else play();
}

function play(): void {
  const timeline = state.scene.value?.timeline;
  if (!timeline || !state.motion.value) {
    state.notify("There is nothing to play yet: key a handle at two frames, or open a clip.", "info");
    return;
  }
  from = frame.value >= timeline.frames - 1 ? 0 : frame.value;
  began = performance.now();
  state.playing.value = true;
  requestAnimationFrame(step);
}

function stop(): void {
  state.playing.value = false;
  scrub(frame.value, true);
}

/** Real time: the frame is what the clock says, whatever the drawing takes. */
function step(now: number): void {
  const timeline = state.scene.value?.timeline;
  if (!state.playing.value || !timeline) return;
  const passed = Math.floor(((now - began) / 1000) * timeline.fps);
  frame.value = (from + passed) % timeline.frames;
  requestAnimationFrame(step);
}
