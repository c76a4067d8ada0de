/** The hand on the stage: choose joints, drag handles in the plane of the view or by the gizmo. */
import { Object3D, Quaternion, Vector3 } from "three";
import { TransformControls } from "three/examples/jsm/controls/TransformControls.js";
import { type Quat, type Vec2, type Vec3, jointPosition, jointRotation } from "../arrays";
import { LOOK_AT } from "../messages";
import { shownJoints } from "../shown";
import * as state from "../state";
import { threeQuaternion } from "../turns";
import * as view from "../view";
import { alongWith, beginGesture, drag, dragKey, endGesture, handleOn, putProp, turnJoints } from "../studio";
import { SelectionBox, beginsBox } from "./box";
import { HandleMarks } from "./handle_marks";
import { type Picked, handlePlaces, pick } from "./picking";
import { CLEARANCE } from "./props";
import type { Stage } from "./stage";

const AXES = { x: "#d4503f", y: "#5a9a3c", z: "#3f74d6", active: "#f0a030" };
const CLICK = 4; // pixels that a click may wander

interface Grip {
  readonly picked: Picked;
  readonly start: Vec2;
  readonly offset: Vec2;
  readonly more: boolean;
  id: string;
  moved: boolean;
}

export class HandleTool {
  private readonly marks: HandleMarks;
  private readonly box: SelectionBox;
  private readonly gizmo: TransformControls;
  private readonly proxy = new Object3D();
  private readonly began = new Quaternion();
  /** Where all handles were when the gesture began. */
  private grip: Grip | null = null;
  /** What was pressed that only a click counts on. */
  private pressed: { readonly picked: Picked | null; readonly pixel: Vec2; readonly more: boolean } | null = null;

  constructor(private readonly stage: Stage) {
    this.marks = new HandleMarks(stage);
    this.box = new SelectionBox(stage);
    this.gizmo = this.makeGizmo();
    const { canvas } = stage;
    canvas.addEventListener("pointerdown", (event) => this.press(event), { capture: true });
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", (event) => this.release(event));
    canvas.addEventListener("pointerleave", () => this.hover(null));
  }

  /** Puts the gizmo where the selected handle is. */
  refresh(): void {
    const prop = state.props.value.find(({ id }) => id === state.selectedProp.value);
    const at = prop?.position ?? handlePlaces().find(({ id }) => id === state.selected.value)?.wanted ?? freeJoint();
    const wanted = at && state.tool.value !== "drag" && !state.playing.value;
    if (!wanted) this.gizmo.detach();
    else if (!this.gizmo.dragging) {
      this.proxy.position.set(...at);
      this.proxy.quaternion.copy(prop ? threeQuaternion(prop.rotation) : this.rotationOf(state.selected.value ?? ""));
      this.gizmo.setTranslationSnap(view.snap.value ? view.SNAP : null);
      this.gizmo.setRotationSnap(view.snap.value ? view.SNAP_TURN : null);
      this.gizmo.setSpace(state.localAxes.value ? "local" : "world");
      this.gizmo.setMode(state.tool.value === "rotate" ? "rotate" : "translate");
      this.gizmo.attach(this.proxy);
    }
    this.stage.invalidate();
  }

  nudge(right: number, up: number, depth: number): void {
    const place = handlePlaces().find(({ id }) => id === state.selected.value);
    if (!place) return;
    const axes = this.stage.screenAxes();
    const forward = new Vector3().crossVectors(axes.up, axes.right);
    const moved = new Vector3(...place.wanted);
    moved.addScaledVector(axes.right, right).addScaledVector(axes.up, up).addScaledVector(forward, depth);
    drag(place.id, { position: moved.toArray() }, true);
  }

  // --- the pointer --------------------------------------------------------------------------------------------------

  private press(event: PointerEvent): void {
    if (!event.isPrimary) return this.letGo(); // a second finger: the view is meant
    const pixel = this.stage.pixelOf(event);
    const barred = event.altKey || state.playing.value || (!state.boxing.value && this.isOnGizmo(event, pixel));
    if (event.button !== 0 || barred) return;
    const picked = pick(this.stage, pixel);
    if (beginsBox(event, picked)) return this.openBox(event, pixel);
    if (picked?.what === "marker") state.selectedMarker.value = picked.marker;
    if (!picked || picked.what === "marker") {
      this.pressed = { picked: null, pixel, more: event.shiftKey };
      return;
    }
    if (state.tool.value !== "drag" && (picked.what === "joint" || picked.what === "handle")) {
      this.pressed = { picked, pixel, more: event.shiftKey }; // the gizmo moves; a drag beside it turns the view
      return;
    }
    const at = this.stage.project(picked.position) ?? pixel;
    this.grip = {
      picked,
      start: pixel,
      offset: [at[0] - pixel[0], at[1] - pixel[1]],
      id: idOf(picked),
      more: event.shiftKey,
      moved: false,
    };
    this.hover(null);
    this.remember();
    if (event.pointerType !== "touch") this.stage.controls.enabled = false; // by touch, once it moves
    this.stage.canvas.setPointerCapture(event.pointerId);
    if (picked.what === "handle" && !event.shiftKey && !alongWith(picked.id).length) state.select(picked.id);
    if (picked.what === "key") state.select(picked.key.handle);
  }

  private openBox(event: PointerEvent, pixel: Vec2): void {
    this.box.open(pixel);
    this.stage.controls.enabled = this.gizmo.enabled = false;
    this.stage.canvas.setPointerCapture(event.pointerId);
  }

  /** A grip that nothing has come of is given up. */
  private letGo(): void {
    if (!this.grip?.moved) this.grip = this.pressed = null;
  }

  /** With Shift, what is under a ring of the gizmo is meant. A finger does not hover over it before it presses. */
  private isOnGizmo(event: PointerEvent, [x, y]: Vec2): boolean {
    if (event.shiftKey && pick(this.stage, [x, y])) return (this.gizmo.enabled = false);
    if (event.pointerType === "touch" && this.gizmo.object) {
      const { clientWidth, clientHeight } = this.stage.canvas;
      this.gizmo.pointerHover({ x: (2 * x) / clientWidth - 1, y: 1 - (2 * y) / clientHeight, button: 0 } as never);
    }
    return this.gizmo.axis !== null;
  }

  private move(event: PointerEvent): void {
    if (!event.isPrimary) return;
    const pixel = this.stage.pixelOf(event);
    const { grip } = this;
    if (this.box.isOpen) return this.box.stretch(pixel);
    if (!grip) {
      if (event.buttons === 0) this.hover(this.gizmo.axis ? null : pick(this.stage, pixel));
      return;
    }
    if (!grip.moved && isClick(grip.start, pixel)) return;
    this.stage.controls.enabled = false;
    if (!grip.moved) beginGesture();
    if (!grip.moved) this.begin(grip);
    grip.moved = true;
    this.pull(grip, pixel, false, event.ctrlKey);
  }

  private release(event: PointerEvent): void {
    if (!event.isPrimary) return;
    const pixel = this.stage.pixelOf(event);
    const { grip } = this;
    this.grip = null;
    this.stage.controls.enabled = this.gizmo.enabled = true;
    if (this.box.isOpen) this.box.close(event.shiftKey);
    else if (grip?.moved) {
      this.pull(grip, pixel, true, event.ctrlKey);
      endGesture();
      state.dragged.value = null;
    } else if (grip) choose(grip.picked, grip.more);
    else if (this.pressed && isClick(this.pressed.pixel, pixel)) this.click(this.pressed);
    this.pressed = null;
    this.refresh();
  }

  private click({ picked, pixel, more }: NonNullable<HandleTool["pressed"]>): void {
    const prop = picked ? null : this.stage.propAt(pixel);
    if (prop) state.selectProp(prop.id);
    else choose(picked, more);
  }

  private begin(grip: Grip): void {
    if (grip.picked.what !== "joint") return;
    grip.id = handleOn(grip.picked.joint).id;
    state.select(grip.id);
  }

  private pull({ id, picked, offset }: Grip, pixel: Vec2, last: boolean, opposite: boolean): void {
    const at: Vec2 = [pixel[0] + offset[0], pixel[1] + offset[1]];
    const clearance = state.isSkin(id) ? 0 : CLEARANCE;
    const surface = view.isSnapping(opposite) ? this.stage.propAt(at, true, clearance) : null;
    const position = surface?.place ?? view.snapped(this.stage.unproject(at, picked.position), opposite);
    if (picked.what === "key") dragKey({ ...picked.key, position }, last);
    else this.pullHandle(id, position, last);
    this.refresh();
  }

  private pullHandle(id: string, position: Vec3, last: boolean): void {
    state.dragged.value = { id, position };
    drag(id, { position }, last);
  }

  private hover(picked: Picked | null): void {
    this.marks.hovered = picked;
    this.stage.canvas.style.cursor = state.boxing.value ? "crosshair" : picked ? "grab" : "";
    this.stage.invalidate();
  }

  // --- the gizmo ----------------------------------------------------------------------------------------------------

  private makeGizmo(): TransformControls {
    const gizmo = new TransformControls(this.stage.camera, this.stage.canvas);
    gizmo.setSize(0.75);
    gizmo.setColors(AXES.x, AXES.y, AXES.z, AXES.active);
    gizmo.addEventListener("change", this.stage.invalidate);
    gizmo.addEventListener("objectChange", () => this.turn(false));
    gizmo.addEventListener("dragging-changed", ({ value }) => {
      this.stage.controls.enabled = !value;
      if (value) {
        beginGesture();
        this.remember();
      } else {
        this.turn(true);
        endGesture();
      }
    });
    this.stage.scene.add(this.proxy, gizmo.getHelper());
    return gizmo;
  }

  private remember(): void {
    this.began.copy(this.proxy.quaternion);
  }

  private turn(last: boolean): void {
    const position = this.proxy.position.toArray();
    const prop = state.props.value.find((each) => each.id === state.selectedProp.value);
    if (prop) return putProp({ ...prop, position, rotation: this.proxyTurn() }, last);
    const id = state.selected.value;
    if (!id) return;
    if (this.gizmo.mode === "rotate") {
      if (!state.selectedHandle.value?.pinned) this.turnFreely(id, position, last);
      else drag(id, { rotation: this.proxyTurn() }, last);
    } else this.pullHandle(id, position, last);
    if (last) state.dragged.value = null;
  }

  private proxyTurn(): Quat {
    const { x, y, z, w } = this.proxy.quaternion;
    return [w, x, y, z];
  }

  /** The joint turns, and the others that are selected with it; nothing is solved. */
  private turnFreely(id: string, position: Vec3, last: boolean): void {
    const { x, y, z, w } = this.proxy.quaternion.clone().multiply(this.began.clone().invert());
    state.dragged.value = { id, position };
    turnJoints(state.selectedJoints.value, [w, x, y, z], last);
  }

  private rotationOf(id: string): Quaternion {
    const handle = state.handles.value.find((candidate) => candidate.id === id);
    const joints = shownJoints.value;
    const joint = state.jointNumber(handle?.joint ?? id);
    return threeQuaternion(handle?.rotation ?? (joints && joint >= 0 ? jointRotation(joints, joint) : [1, 0, 0, 0]));
  }
}

function isClick(from: Vec2, to: Vec2): boolean {
  return Math.hypot(to[0] - from[0], to[1] - from[1]) < CLICK;
}

function choose(picked: Picked | null, more: boolean): void {
  if (!picked && !more) state.select(null);
  else if (picked?.what === "joint") state.select(turnable(picked.joint) ?? handleOn(picked.joint).id, more);
  else if (picked?.what === "handle") state.select(picked.id, more);
}

/** In the Rotate tool a joint needs no handle; the end of a bone turns with its joint. */
function turnable(name: string): string | null {
  if (state.tool.value !== "rotate") return null;
  const joints = state.body.value?.joints ?? [];
  const joint = joints.find((candidate) => candidate.name === name);
  return (joint?.end ? joints[joint.parent]?.name : name) ?? null;
}

/** Where the Rotate tool has a joint that no handle is on. */
function freeJoint(): Vec3 | null {
  const joints = shownJoints.value;
  const number = state.tool.value === "rotate" && state.selected.value ? state.jointNumber(state.selected.value) : -1;
  return joints && number >= 0 ? jointPosition(joints, number) : null;
}

function idOf(picked: Picked): string {
  if (picked.what === "lookAt") return LOOK_AT;
  if (picked.what === "key") return picked.key.handle;
  if (picked.what === "marker") return picked.marker;
  return picked.what === "joint" ? picked.joint : picked.id;
}
