/** A body that has to go far at once, because a foot steps or a handle cannot be met otherwise, is shown on its way. */
import { STRIDE } from "../arrays";

const TIME = 200; // milliseconds

export class Easing {
  private shown: Float32Array = new Float32Array();
  private from: Float32Array = new Float32Array();
  private to: Float32Array = new Float32Array();
  private ends = 0;

  constructor(private readonly show: (world: Float32Array) => void) {}

  /** Shows a pose: at once, or eased where it jumps or another jump is still under way. */
  go(world: Float32Array, jumps: boolean): void {
    const now = performance.now();
    const alike = world.length === this.shown.length;
    const begins = jumps && alike && now >= this.ends;
    this.to = world;
    if (begins) {
      this.from = this.shown.slice();
      this.ends = now + TIME;
      requestAnimationFrame(this.step);
    } else if (!alike || now >= this.ends) {
      this.ends = 0;
      this.put(world);
    }
  }

  private readonly step = (now: number): void => {
    if (!this.ends) return;
    const left = Math.min(Math.max(this.ends - now, 0) / TIME, 1);
    this.put(left ? between(this.from, this.to, 1 - left * left) : this.to);
    if (left) requestAnimationFrame(this.step);
  };

  private put(world: Float32Array): void {
    this.shown = world;
    this.show(world);
  }
}

/** A pose on the way from one to another: places straight, turns the short way. */
function between(from: Float32Array, to: Float32Array, share: number): Float32Array {
  const found = new Float32Array(to.length);
  for (let at = 0; at < to.length; at += STRIDE) {
    let along = 0;
    for (let i = 3; i < STRIDE; i += 1) along += from[at + i]! * to[at + i]!;
    const sign = along < 0 ? -1 : 1;
    for (let i = 0; i < STRIDE; i += 1) {
      found[at + i] = (1 - share) * from[at + i]! * (i < 3 ? 1 : sign) + share * to[at + i]!;
    }
    const size = Math.hypot(found[at + 3]!, found[at + 4]!, found[at + 5]!, found[at + 6]!);
    for (let i = 3; i < STRIDE; i += 1) found[at + i] = found[at + i]! / size;
  }
  return found;
}
