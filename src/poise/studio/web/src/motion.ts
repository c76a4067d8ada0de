/** The solved timeline, kept in the page so that playing and scrubbing wait for nobody. */
import { STRIDE, type Vec3, floats } from "./arrays";
import type { MotionRange } from "./messages";

export class Motion {
  readonly known: Uint8Array;
  readonly unmet = new Set<number>();
  readonly paths = new Map<string, Float32Array>();
  private readonly world: Float32Array;

  constructor(
    readonly frames: number,
    readonly joints: number,
  ) {
    this.known = new Uint8Array(frames);
    this.world = new Float32Array(frames * joints * STRIDE);
  }

  /** This motion with a newly solved range in it. */
  with(range: MotionRange): Motion {
    const next = new Motion(this.frames, this.joints);
    next.known.set(this.known);
    next.world.set(this.world);
    this.unmet.forEach((frame) => next.unmet.add(frame));
    for (const handle of range.pathHandles) {
      const path = this.paths.get(handle);
      if (path) next.paths.set(handle, path.slice());
    }
    next.take(range);
    return next;
  }

  /** The joints' transforms of a frame, or null where nothing has been solved yet. */
  at(frame: number): Float32Array | null {
    if (!this.known[frame]) return null;
    const size = this.joints * STRIDE;
    return this.world.subarray(frame * size, (frame + 1) * size);
  }

  path(handle: string): Vec3[] {
    const path = this.paths.get(handle);
    if (!path) return [];
    return Array.from({ length: path.length / 3 }, (_, frame) => path.slice(frame * 3, frame * 3 + 3)).map(
      ([x = Number.NaN, y = Number.NaN, z = Number.NaN]): Vec3 => [x, y, z],
    );
  }

  /** Where a joint is in every frame. */
  way(joint: number): Vec3[] {
    if (joint < 0) return [];
    return Array.from({ length: this.frames }, (_, frame) => {
      const at = (frame * this.joints + joint) * STRIDE;
      return this.known[frame] ? [this.world[at]!, this.world[at + 1]!, this.world[at + 2]!] : [NaN, NaN, NaN];
    });
  }

  private take(range: MotionRange): void {
    const size = this.joints * STRIDE;
    const last = Math.min(range.first + range.frames, this.frames);
    this.world.set(floats(range.world).subarray(0, (last - range.first) * size), range.first * size);
    const all = floats(range.paths);
    range.pathHandles.forEach((handle, number) => {
      const path = this.paths.get(handle) ?? new Float32Array(this.frames * 3).fill(Number.NaN);
      const part = all.subarray(number * range.frames * 3, (number * range.frames + last - range.first) * 3);
      path.set(part, range.first * 3);
      this.paths.set(handle, path);
    });
    for (let frame = range.first; frame < last; frame += 1) {
      this.known[frame] = 1;
      this.unmet.delete(frame);
    }
    range.unmet.forEach((frame) => this.unmet.add(frame));
  }
}
