/** A video to work from, on a board: it shows the moment of the frame under the playhead, and does not play by itself. */
import { VideoTexture } from "three";

const READY = 5000; // milliseconds to wait for a file that may not be a video

/** A video element that shows its first picture; it rejects what the browser cannot play. */
export async function openVideo(address: string): Promise<HTMLVideoElement> {
  const video = document.createElement("video");
  video.muted = video.playsInline = true;
  video.preload = "auto";
  await new Promise<void>((resolve, reject) => {
    video.onloadeddata = () => resolve();
    video.onerror = () => reject(new Error("the browser cannot play this video"));
    setTimeout(reject, READY);
    video.src = address;
  });
  return video;
}

/** A texture that `seek` moves in time. */
export class TimedPicture extends VideoTexture {
  constructor(
    private readonly video: HTMLVideoElement,
    changed: () => void,
  ) {
    super(video);
    video.onseeked = () => {
      this.needsUpdate = true;
      changed();
    };
  }

  seek(seconds: number): void {
    const at = Math.min(seconds, this.video.duration || 0);
    if (Math.abs(this.video.currentTime - at) > 1e-3) this.video.currentTime = at;
  }

  override dispose(): void {
    URL.revokeObjectURL(this.video.src);
    super.dispose();
  }
}

/** The whole file first: only then can any moment be shown at once. */
export async function timedPicture(address: string, changed: () => void): Promise<TimedPicture> {
  const file = await (await fetch(address)).blob();
  return new TimedPicture(await openVideo(URL.createObjectURL(file)), changed);
}
