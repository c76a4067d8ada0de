/** A take of markers as it is shown: what was seen, what was filled, how sure that is. */
import { type Vec3, floats } from "./arrays";
import type { Take } from "./messages";

export interface MarkerShown {
  readonly position: Vec3;
  readonly seen: boolean;
  readonly deviation: number;
}

export class TakeData {
  readonly name: string;
  readonly fps: number;
  readonly frames: number;
  readonly markers: readonly string[];
  /** Numbers of the markers, those with most missing first. */
  readonly byGaps: readonly number[];
  private readonly positions: Float32Array;
  private readonly filled: Float32Array;
  private readonly deviations: Float32Array;

  constructor(take: Take) {
    ({ name: this.name, fps: this.fps, frames: this.frames, markers: this.markers } = take);
    this.positions = floats(take.positions);
    this.filled = floats(take.filled);
    this.deviations = floats(take.deviations);
    const missing = take.markers.map((_, number) => this.missing(number));
    this.byGaps = take.markers.map((_, number) => number).sort((a, b) => missing[b]! - missing[a]!);
  }

  get isFilled(): boolean {
    return this.filled.length > 0;
  }

  seen(frame: number, marker: number): boolean {
    return Number.isFinite(this.positions[(frame * this.markers.length + marker) * 3]);
  }

  marker(anyFrame: number, marker: number): MarkerShown | null {
    const frame = Math.min(anyFrame, this.frames - 1);
    const at = frame * this.markers.length + marker;
    const seen = this.seen(frame, marker);
    const source = seen ? this.positions : this.filled;
    const [x, y, z] = source.subarray(at * 3, at * 3 + 3);
    if (x === undefined || y === undefined || z === undefined || !Number.isFinite(x)) return null;
    return { position: [x, y, z], seen, deviation: seen ? 0 : (this.deviations[at] ?? 0) };
  }

  /** The middle of all markers that have a place at a frame. */
  middle(frame: number): Vec3 | null {
    const shown = this.markers.flatMap((_, number) => this.marker(frame, number)?.position ?? []);
    if (!shown.length) return null;
    const mean = (axis: number): number =>
      shown.reduce((sum, value, k) => (k % 3 === axis ? sum + value : sum), 0) / (shown.length / 3);
    return [mean(0), mean(1), mean(2)];
  }

  /** How many frames lack a marker. */
  missing(marker: number): number {
    return this.gaps(marker).reduce((sum, [first, last]) => sum + last - first + 1, 0);
  }

  /** Runs of frames in which a marker is missing. */
  gaps(marker: number): [first: number, last: number][] {
    const runs: [number, number][] = [];
    for (let frame = 0; frame < this.frames; frame += 1) {
      if (this.seen(frame, marker)) continue;
      const run = runs.at(-1);
      if (run && run[1] === frame - 1) run[1] = frame;
      else runs.push([frame, frame]);
    }
    return runs;
  }
}
