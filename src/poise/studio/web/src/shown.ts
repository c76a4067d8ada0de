/** What is on the stage just now: the server's pose, or a frame of the timeline while it plays or is scrubbed. */
import { computed, effect, signal } from "@preact/signals";
import { clamp } from "./arrays";
import { setFrame } from "./studio";
import * as state from "./state";

/** The frame of the timeline under the playhead, ahead of the server's while playing. */
export const frame = signal(0);
const scrubbing = signal(false);

/** Length and rate of what the timeline shows: the take where markers are looked at, else the scene's. */
export const clock = computed<{ readonly frames: number; readonly fps: number }>(() => {
  const take = state.workspace.value === "capture" ? state.take.value : null;
  return take ?? state.scene.value?.timeline ?? { frames: 1, fps: 30 };
});

/** Whether the stage shows a frame that the server has not been asked for: handles then follow the body. */
export const ahead = computed(() => state.playing.value || scrubbing.value);

export const shownJoints = computed<Float32Array | null>(() => {
  const played = ahead.value || followsMotion() ? state.motion.value?.at(frame.value) : null;
  return played ?? state.pose.value?.joints ?? null;
});

/** A take is shown without a body until one has been solved through it. */
export const bodyIsShown = computed(() => {
  if (state.workspace.value !== "capture" || !state.take.value || state.isLive.value) return true;
  return state.take.value.isFilled && state.motion.value?.frames === state.take.value.frames;
});

/** On the timeline a pose that no handle has changed is the motion's, which may have been smoothed since. */
function followsMotion(): boolean {
  if (state.isLive.value) return false;
  if (state.workspace.value === "capture") return bodyIsShown.value;
  const posed = !!state.pose.value?.residuals.length || !!state.pose.value?.byHand;
  return state.workspace.value === "animate" && !state.dragged.value && !posed;
}

effect(() => {
  const current = state.scene.value?.timeline.frame;
  if (current !== undefined && !state.playing.peek() && !scrubbing.peek()) frame.value = current;
});

export function scrub(to: number, last: boolean): void {
  scrubbing.value = !last;
  frame.value = clamp(Math.round(to), 0, clock.value.frames - 1);
  if (state.workspace.value !== "capture" || !state.take.value) setFrame(frame.value, last);
}

let began = 0;
let from = 0;

export function togglePlay(): void {
  if (state.playing.value) stop();
  else play();
}

function play(): void {
  const something = (state.workspace.value === "capture" && state.take.value) || state.motion.value;
  if (!something) {
    state.notify("Nothing to play yet: key the pose at two frames (S), or open a clip.", "info");
    return;
  }
  const [first, last] = looped();
  from = frame.value < first || frame.value >= last ? first : frame.value;
  began = performance.now();
  state.playing.value = true;
  requestAnimationFrame(step);
}

/** What plays round and round: the range, or all. */
function looped(): readonly [number, number] {
  const end = clock.value.frames - 1;
  const [first, last] = state.range.value ?? [0, end];
  return last <= end ? [first, last] : [0, end];
}

function stop(): void {
  state.playing.value = false;
  scrub(frame.value, true);
}

/** Real time: the frame is what the clock says, whatever the drawing takes. */
function step(now: number): void {
  if (!state.playing.value) return;
  const passed = Math.floor((Math.max(now - began, 0) / 1000) * clock.value.fps);
  const [first, last] = looped();
  frame.value = first + ((from - first + passed) % (last - first + 1));
  requestAnimationFrame(step);
}
