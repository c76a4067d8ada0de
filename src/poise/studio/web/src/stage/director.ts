/** Keeps the stage true to the state: body, pose, ghosts, onion skin, handles, paths and markers. */
import { effect } from "@preact/signals";
import { type Vec3, floats, furthest, jointPosition } from "../arrays";
import { others, pointedKind } from "../advice";
import { ahead, bodyIsShown, clock, frame, shownJoints } from "../shown";
import * as state from "../state";
import * as view from "../view";
import { showsVideo } from "../panels/video";
import { listen } from "../studio";
import { palette } from "../theme";
import { Easing } from "./easing";
import { HandleTool } from "./handles";
import { paintMarkers } from "./markers";
import { Stage } from "./stage";
import { paintTrajectories } from "./trajectories";
import type { ViewName } from "./views";

const SAME = 0.01; // metres within which two poses are the same to the eye
const MOST_SKINS = 24;
const OTHERS = 0.55; // strength of poses that are possible too

export class Director {
  readonly stage: Stage;
  private readonly tool: HandleTool;
  private readonly easing: Easing;
  private besidePhoto = false;
  private ghost: Float32Array = new Float32Array();

  constructor(host: HTMLElement) {
    this.stage = new Stage(host);
    this.stage.addPainter((pen) => paintTrajectories(pen, this.stage));
    this.stage.addPainter((pen) => paintMarkers(pen, this.stage));
    this.tool = new HandleTool(this.stage);
    this.easing = new Easing((world) => this.stage.setPose(world));
    this.follow();
    window.poise = { state, stage: this.stage, frame, shownJoints, frameSelection: () => this.home() };
  }

  look(view: ViewName): void {
    this.stage.look(view);
  }

  /** The selected joints, or the whole body. */
  home(): void {
    const joints = shownJoints.value;
    if (!joints) return;
    const chosen = state.selectedJoints.value.map(state.jointNumber).filter((number) => number >= 0);
    if (chosen.length) this.stage.frame(chosen.map((number) => jointPosition(joints, number)));
    else this.stage.home(jointPosition(joints, 0));
  }

  nudge(...step: Vec3): void {
    this.tool.nudge(...step);
  }

  private follow(): void {
    effect(() => {
      if (state.body.value) this.stage.setBody(state.body.value);
    });
    effect(() => this.stage.paint(palette.value));
    effect(() => {
      if (!bodyIsShown.value) this.stage.hideBody();
      else if (state.body.value && shownJoints.value) this.easing.go(shownJoints.value, jumps(shownJoints.value));
    });
    effect(() => this.followMarkers());
    effect(() => this.turnForPhoto(state.workspace.value === "photo"));
    effect(() => this.stage.props.show(state.props.value));
    effect(() => this.stage.props.seek(frame.value / clock.value.fps));
    effect(() => this.stage.film(showsVideo("over") ? (state.scene.value?.video ?? null) : null));
    effect(() => this.stage.setFlat(view.flat.value));
    effect(() => this.stage.setNavigation(view.navigation.value));
    effect(() => this.showSkins());
    effect(() => this.refresh());
    listen((message) => {
      if (message.type === "ghost") this.ghost = floats(message.world);
      if (message.type === "ghost" || message.type === "pose") this.showGhost();
      if (message.type === "hoverPose")
        this.stage.setGhost("hover", state.latentCursor.value ? floats(message.world) : null);
    });
    effect(() => {
      const offered = state.offered.value;
      if (offered || !state.latentCursor.value) this.stage.setGhost("hover", offered);
    });
    effect(() => {
      void [state.ghostOf.value, state.showGhost.value];
      this.showGhost();
    });
  }

  /** The previous result, where it differs from this one. */
  private showGhost(): void {
    const joints = state.pose.value?.joints;
    const wanted =
      state.showGhost.value &&
      state.ghostOf.value &&
      !this.besidePhoto &&
      joints &&
      furthest(this.ghost, joints) > SAME;
    this.stage.setGhost("before", wanted ? this.ghost : null);
  }

  /** Everything that marks on the stage depend on. */
  private refresh(): void {
    void [state.scene.value, state.selected.value, state.tool.value, state.dragged.value, state.workspace.value];
    void [state.selectedProp.value, state.props.value];
    void [state.alsoSelected.value, state.localAxes.value, view.snap.value, view.trails.value, state.range.value];
    void [shownJoints.value, ahead.value, state.motion.value, state.take.value, state.performing.value, frame.value];
    this.tool.refresh();
  }

  /** In a take that has no body yet the camera goes along with the markers. */
  private followMarkers(): void {
    const middle = bodyIsShown.value ? null : state.take.value?.middle(frame.value);
    if (middle) this.stage.keepInView(middle);
  }

  /** Beside a photo the body is seen from the side: what the photo cannot tell. */
  private turnForPhoto(photo: boolean): void {
    const joints = shownJoints.peek();
    if (joints && photo !== this.besidePhoto) this.stage.home(jointPosition(joints, 0), photo ? "left" : "perspective");
    this.besidePhoto = photo;
    this.showGhost();
  }

  private showSkins(): void {
    const solved = state.motion.value;
    const wanted = state.onion.value && state.workspace.value === "animate" && solved && !state.playing.value;
    const skins = wanted
      ? skinFrames().flatMap(({ at, strength }) => {
          const world = solved.at(at);
          return world ? [{ world, strength }] : [];
        })
      : possible().map((world) => ({ world, strength: OTHERS }));
    this.stage.setSkins(skins);
  }
}

/** Poses that are possible too: all where they are asked for, or the one that is pointed at. */
function possible(): readonly Float32Array[] {
  const pointed = pointedKind.value === null ? undefined : others.value[pointedKind.value];
  return pointed ? [pointed] : view.soft.value ? others.value : [];
}

/** Whether a pose is one that a drag could only jump to. */
function jumps(world: Float32Array): boolean {
  const pose = state.pose.peek();
  return pose?.joints === world && pose.jumps;
}

/** Every so many frames: some before and after the one shown, or all over the range. */
function skinFrames(): { at: number; strength: number }[] {
  const step = view.ghostStep.value;
  const range = view.ghostsOverRange.value ? state.range.value : null;
  if (range) {
    const every = Math.max(step, Math.ceil((range[1] - range[0]) / MOST_SKINS));
    const count = Math.floor((range[1] - range[0]) / every) + 1;
    return Array.from({ length: count }, (_, number) => ({ at: range[0] + number * every, strength: 0.6 }));
  }
  const count = view.ghostCount.value;
  return Array.from({ length: 2 * count + 1 }, (_, number) => number - count)
    .filter((number) => number !== 0)
    .map((number) => ({ at: frame.value + number * step, strength: 1 - Math.abs(number) / (count + 1) }));
}

declare global {
  interface Window {
    /** What is on the stage. */
    poise: {
      state: typeof state;
      stage: Stage;
      frame: typeof frame;
      shownJoints: typeof shownJoints;
      frameSelection: () => void;
    };
  }
}
