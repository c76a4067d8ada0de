/** Fewer pixels while things move on a machine that cannot keep up, all of them once they rest. */
import { clamp } from "../arrays";

const AWAKE = 500; // milliseconds between two drawings that still belong to one movement
const LATE = 45;
const PATIENCE = 3; // late drawings before pixels are saved
const REST = 220;
const SAVED = 0.5;

export class Pace {
  private last = 0;
  private late = 0;
  private resting = 0;
  private saves = false;

  constructor(private readonly draw: (share: number) => void) {}

  /** The share of pixels to draw now; it changes once in a movement, since each change makes the canvas again. */
  tick(now: number): number {
    const gap = now - this.last;
    this.last = now;
    if (gap < AWAKE) this.late = clamp(this.late + (gap > LATE ? 1 : -1), 0, 2 * PATIENCE);
    this.saves ||= this.late >= PATIENCE;
    clearTimeout(this.resting);
    if (!this.saves) return 1;
    this.resting = window.setTimeout(() => this.settle(), REST);
    return SAVED;
  }

  private settle(): void {
    this.saves = false;
    this.draw(1);
  }
}
