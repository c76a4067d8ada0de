/** A box drawn over the stage: it selects the handles in it; in the Rotate tool, or where it holds none, the joints. */
import { type Vec2, type Vec3, jointPosition } from "../arrays";
import { shownJoints } from "../shown";
import * as state from "../state";
import { palette } from "../theme";
import * as view from "../view";
import { type Picked, handlePlaces } from "./picking";
import type { Stage } from "./stage";

const SMALLEST = 4; // pixels: less is a click

/** Whether a press begins a box: after B anywhere, else beside the body, with Shift where a drag turns the view. */
export function beginsBox(event: PointerEvent, picked: Picked | null): boolean {
  if (event.pointerType === "touch" || state.workspace.value === "capture") return false;
  return state.boxing.value || (!picked && (event.shiftKey || view.navigation.value !== "poise"));
}

export class SelectionBox {
  private from: Vec2 | null = null;
  private to: Vec2 = [0, 0];

  constructor(private readonly stage: Stage) {
    stage.addPainter((pen) => this.paint(pen));
  }

  get isOpen(): boolean {
    return this.from !== null;
  }

  open(pixel: Vec2): void {
    this.from = this.to = pixel;
  }

  stretch(pixel: Vec2): void {
    this.to = pixel;
    this.stage.invalidate();
  }

  /** Selects what is inside, besides what is selected already where `more` is wished. */
  close(more: boolean): void {
    const { from, to } = this;
    this.from = null;
    state.boxing.value = false;
    this.stage.invalidate();
    const isClick = !from || Math.hypot(to[0] - from[0], to[1] - from[1]) < SMALLEST;
    if (!isClick) state.selectAll(this.inside(from), more);
    else if (!more) state.select(null);
  }

  private inside(from: Vec2): string[] {
    const holds = (place: Vec3): boolean => {
      const at = this.stage.project(place);
      return (
        !!at &&
        at.every((value, k) => value >= Math.min(from[k]!, this.to[k]!) && value <= Math.max(from[k]!, this.to[k]!))
      );
    };
    const handles = handlePlaces().filter(({ wanted }) => holds(wanted));
    if (handles.length && state.tool.value !== "rotate") return handles.map(({ id }) => id);
    const joints = shownJoints.value;
    const ids = new Map(state.handles.value.map(({ id, joint }) => [joint, id]));
    return (state.body.value?.joints ?? [])
      .filter(({ end }, number) => !end && joints && holds(jointPosition(joints, number)))
      .map(({ name }) => ids.get(name) ?? name);
  }

  private paint(pen: CanvasRenderingContext2D): void {
    if (!this.from) return;
    const [x, y] = this.from;
    pen.fillStyle = pen.strokeStyle = palette.value.accent;
    pen.globalAlpha = 0.12;
    pen.fillRect(x, y, this.to[0] - x, this.to[1] - y);
    pen.globalAlpha = 1;
    pen.lineWidth = 1;
    pen.strokeRect(x, y, this.to[0] - x, this.to[1] - y);
  }
}
