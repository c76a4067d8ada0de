/** How handles look on the stage: filled when hard, open when soft, red where the body cannot reach. */
import { LOOK_AT, type SceneHandle } from "../messages";
import { type Vec2, type Vec3, jointPosition } from "../arrays";
import { shownJoints } from "../shown";
import * as state from "../state";
import { palette } from "../theme";
import { type HandlePlace, type Picked, handlePlaces, lookAtPlace } from "./picking";
import type { Stage } from "./stage";

const MISSED = 0.01; // metres from which a handle counts as not reached
const RADIUS = 6;

export class HandleMarks {
  hovered: Picked | null = null;

  constructor(private readonly stage: Stage) {
    stage.addPainter((pen) => this.paint(pen));
  }

  private paint(pen: CanvasRenderingContext2D): void {
    if (state.playing.value || state.workspace.value === "capture") return;
    this.paintHover(pen);
    this.paintJoints(pen);
    this.paintLookAt(pen);
    const handles = new Map(state.handles.value.map((handle) => [handle.id, handle]));
    for (const place of handlePlaces()) {
      const handle = handles.get(place.id);
      if (handle) this.paintHandle(pen, handle, place);
    }
  }

  /** Joints that are selected without a handle. */
  private paintJoints(pen: CanvasRenderingContext2D): void {
    const joints = shownJoints.value;
    const held = new Set(state.handles.value.map(({ joint }) => joint));
    for (const name of state.selectedJoints.value) {
      const number = state.jointNumber(name);
      const at = joints && number >= 0 && !held.has(name) ? this.stage.project(jointPosition(joints, number)) : null;
      if (!at) continue;
      ring(pen, at, RADIUS + 1, palette.value.accent, 2);
      label(pen, [at[0] + 13, at[1] - 9], state.labelOf(name), palette.value.accent);
    }
  }

  private paintHandle(pen: CanvasRenderingContext2D, handle: SceneHandle, place: HandlePlace): void {
    const at = this.stage.project(place.wanted);
    if (!at) return;
    const colours = palette.value;
    const missed = handle.pinned && place.missed > Math.max(MISSED, handle.hard ? 0 : handle.tolerance);
    const colour = missed ? colours.danger : handle.pinned ? colours.accent : colours.quiet;
    if (missed) this.paintMiss(pen, at, place);
    if (!handle.hard) this.paintTolerance(pen, at, place.wanted, handle.tolerance, colour);
    if (handle.id === state.selected.value || state.alsoSelected.value.has(handle.id))
      ring(pen, at, RADIUS + 5, colour, 2);
    dot(pen, at, RADIUS, handle.hard && handle.pinned ? colour : colours.surface, colour);
    if (handle.rotation) paintTurn(pen, at, colour);
  }

  private paintMiss(pen: CanvasRenderingContext2D, at: Vec2, place: HandlePlace): void {
    const actual = this.stage.project(place.actual);
    if (!actual) return;
    const colour = palette.value.danger;
    line(pen, at, actual, colour, [4, 4]);
    dot(pen, actual, 3, colour, colour);
    if (place.missed > 0.02) label(pen, [at[0] + 12, at[1] - 10], `${centimetres(place.missed)} out of reach`, colour);
  }

  private paintTolerance(
    pen: CanvasRenderingContext2D,
    at: Vec2,
    point: Vec3,
    tolerance: number,
    colour: string,
  ): void {
    pen.setLineDash([3, 3]);
    ring(pen, at, Math.max(tolerance / this.stage.pixelAt(point), RADIUS + 2), colour, 1);
    pen.setLineDash([]);
  }

  private paintLookAt(pen: CanvasRenderingContext2D): void {
    const target = lookAtPlace();
    const joints = shownJoints.value;
    const at = target && this.stage.project(target);
    if (!at || !joints) return;
    const head = state.body.value?.joints.findIndex((joint) => joint.role === "head") ?? -1;
    const from = head >= 0 ? this.stage.project(jointPosition(joints, head)) : null;
    const colour = palette.value.warm;
    if (from) line(pen, from, at, colour, [2, 5]);
    ring(pen, at, 7, colour, 2);
    dot(pen, at, 2, colour, colour);
    if (this.hovered?.what === "lookAt" || state.dragged.value?.id === LOOK_AT)
      label(pen, [at[0] + 12, at[1] - 8], "looks here", colour);
  }

  private paintHover(pen: CanvasRenderingContext2D): void {
    const { hovered } = this;
    if (
      !hovered ||
      state.dragged.value ||
      hovered.what === "lookAt" ||
      hovered.what === "key" ||
      hovered.what === "marker"
    )
      return;
    const at = this.stage.project(hovered.position);
    if (!at) return;
    const colours = palette.value;
    if (hovered.what === "joint") ring(pen, at, 7, colours.ink, 1.5);
    const handle = hovered.what === "joint" ? undefined : state.handles.value.find((h) => h.id === hovered.id);
    const name = handle ? state.handleLabel(handle) : hovered.what === "joint" ? state.labelOf(hovered.joint) : "";
    label(pen, [at[0] + 13, at[1] - 9], name, colours.ink);
  }
}

export function centimetres(metres: number): string {
  return metres >= 1 ? `${metres.toFixed(2)} m` : `${(metres * 100).toFixed(metres < 0.1 ? 1 : 0)} cm`;
}

export function dot(pen: CanvasRenderingContext2D, at: Vec2, radius: number, fill: string, edge: string): void {
  pen.beginPath();
  pen.arc(at[0], at[1], radius, 0, 2 * Math.PI);
  pen.fillStyle = fill;
  pen.fill();
  pen.lineWidth = 2;
  pen.strokeStyle = fill === edge ? palette.value.surface : edge;
  pen.stroke();
}

export function ring(pen: CanvasRenderingContext2D, at: Vec2, radius: number, colour: string, width: number): void {
  pen.beginPath();
  pen.arc(at[0], at[1], radius, 0, 2 * Math.PI);
  pen.lineWidth = width;
  pen.strokeStyle = colour;
  pen.stroke();
}

export function line(pen: CanvasRenderingContext2D, from: Vec2, to: Vec2, colour: string, dash: number[] = []): void {
  pen.beginPath();
  pen.setLineDash(dash);
  pen.moveTo(...from);
  pen.lineTo(...to);
  pen.lineWidth = 1.5;
  pen.strokeStyle = colour;
  pen.stroke();
  pen.setLineDash([]);
}

export function label(pen: CanvasRenderingContext2D, at: Vec2, words: string, colour: string): void {
  pen.font = "500 12px 'Inter Variable', sans-serif";
  pen.lineJoin = "round";
  pen.lineWidth = 4;
  pen.strokeStyle = palette.value.background;
  pen.strokeText(words, ...at);
  pen.fillStyle = colour;
  pen.fillText(words, ...at);
}

function paintTurn(pen: CanvasRenderingContext2D, at: Vec2, colour: string): void {
  pen.beginPath();
  pen.arc(at[0], at[1], RADIUS + 8, -0.5, 0.9);
  pen.moveTo(at[0] - (RADIUS + 8) * Math.cos(0.5), at[1] + (RADIUS + 8) * Math.sin(0.5));
  pen.arc(at[0], at[1], RADIUS + 8, Math.PI - 0.5, Math.PI + 0.9);
  pen.lineWidth = 1.5;
  pen.strokeStyle = colour;
  pen.stroke();
}
