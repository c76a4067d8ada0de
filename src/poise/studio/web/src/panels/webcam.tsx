/** Webcam: whoever stands before this machine's camera drives the body, without markers; the picture stays beside it. */
import { effect, signal } from "@preact/signals";
import type { JSX } from "preact";
import { CircleStop, Webcam as WebcamIcon } from "lucide-preact";
import * as state from "../state";
import { say } from "../studio";
import { Button, Section } from "./ui";

const WANTED = { width: { ideal: 640 }, height: { ideal: 480 }, frameRate: { ideal: 30 } };
const LONGEST_SIDE = 640; // pixels of a picture that is sent
const QUALITY = 0.85;
const RECENT = 30; // poses over which the latency is measured

export const webcam = signal<MediaStream | null>(null);
const trouble = signal("");
const latencies = signal<readonly number[]>([]);

const TROUBLES: Record<string, string> = {
  NotAllowedError: "The camera is not allowed: allow it for this page in the browser's address bar, then try again.",
  NotFoundError: "No camera was found: plug one in, then try again.",
  NotReadableError: "The camera does not answer: another program may use it. Close that, then try again.",
};
const TAKEN_AWAY = "The camera was disconnected; the performance is on the timeline.";
const NOT_HERE = "The browser allows no camera at this address: open the studio on this machine, or use https.";

export function Webcam(): JSX.Element {
  const now = state.performing.value;
  const stream = webcam.value;
  return (
    <Section title="Webcam">
      {!stream && (
        <p class="empty">
          The body follows the person in front of the camera, and the timeline records it. Show the whole body.
        </p>
      )}
      {stream && (
        <video
          class="webcam"
          aria-label="What the webcam sees"
          autoplay
          muted
          playsInline
          ref={(video) => {
            if (video && video.srcObject !== stream) video.srcObject = stream;
          }}
        />
      )}
      {stream && now && (
        <p class="quiet" role="status" aria-label="State of the webcam">
          {now.rate > 0 && latencies.value.length
            ? `${now.rate.toFixed(0)} bodies a second, ${middle(latencies.value).toFixed(0)} ms from picture to pose`
            : (now.notes[0] ?? "getting ready")}
        </p>
      )}
      {stream ? (
        <Button label="Stop the webcam" icon={CircleStop} kind="primary" onPress={stop} />
      ) : (
        <Button
          label="Use the webcam"
          icon={WebcamIcon}
          kind="plain"
          disabled={state.isLive.value}
          onPress={() => void start()}
        />
      )}
      {trouble.value && (
        <p class="note" role="alert">
          {trouble.value}
        </p>
      )}
    </Section>
  );
}

async function start(): Promise<void> {
  const own = state.model.value; // a character keeps its body
  const model = own?.kind === "universal" ? own : state.models.value.find(({ kind }) => kind === "universal");
  trouble.value = navigator.mediaDevices ? "" : NOT_HERE;
  if (trouble.value || !model) return;
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ video: WANTED, audio: false });
    state.performing.value = null;
    latencies.value = [];
    webcam.value = stream;
    stream.getVideoTracks()[0]?.addEventListener("ended", () => {
      trouble.value = TAKEN_AWAY;
      stop();
    });
    say({ type: "perform", model: model.id, webcam: true });
    await send(stream);
  } catch (error) {
    const name = error instanceof DOMException ? error.name : "";
    trouble.value = TROUBLES[name] ?? `The camera cannot be used: ${String(error)}`;
  }
}

function stop(): void {
  if (state.isLive.value) say({ type: "stopPerforming" });
  release();
}

function release(): void {
  webcam.value?.getTracks().forEach((track) => track.stop());
  webcam.value = null;
}

/** Sends every picture that there is time for; the server takes the newest. */
async function send(stream: MediaStream): Promise<void> {
  const video = document.createElement("video");
  const canvas = document.createElement("canvas");
  video.srcObject = stream;
  video.muted = true;
  await video.play();
  let busy = false;
  const next = (): void => {
    if (webcam.value !== stream) return;
    video.requestVideoFrameCallback(next);
    if (busy || !video.videoWidth) return;
    const taken = performance.now();
    const scale = Math.min(1, LONGEST_SIDE / Math.max(video.videoWidth, video.videoHeight));
    canvas.width = Math.round(video.videoWidth * scale);
    canvas.height = Math.round(video.videoHeight * scale);
    canvas.getContext("2d")?.drawImage(video, 0, 0, canvas.width, canvas.height);
    busy = true;
    canvas.toBlob((blob) => void forward(blob, taken).finally(() => (busy = false)), "image/jpeg", QUALITY);
  };
  video.requestVideoFrameCallback(next);
}

async function forward(blob: Blob | null, taken: number): Promise<void> {
  if (blob && state.isLive.value) say({ type: "webcamPicture", jpeg: new Uint8Array(await blob.arrayBuffer()), taken });
}

function middle(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

effect(() => {
  const now = state.performing.value;
  if (now?.step === "following" && now.taken != null)
    latencies.value = [...latencies.peek(), performance.now() - now.taken].slice(-RECENT);
  if (now?.step === "over") release();
});
