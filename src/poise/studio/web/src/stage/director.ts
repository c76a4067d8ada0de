/** Keeps the stage true to the state: body, pose, ghosts, onion skin, handles, paths and markers. */
import { effect } from "@preact/signals";
import { type Vec3, floats, furthest, jointPosition } from "../arrays";
import { ahead, bodyIsShown, frame, shownJoints } from "../shown";
import * as state from "../state";
import { listen } from "../studio";
import { palette } from "../theme";
import { HandleTool } from "./handles";
import { paintMarkers } from "./markers";
import { Stage } from "./stage";
import { paintTrajectories } from "./trajectories";
import type { ViewName } from "./views";

const SAME = 0.01; // metres within which two poses are the same to the eye
const ONION_STEPS = [-12, -8, -4, 4, 8, 12]; // frames

export class Director {
  readonly stage: Stage;
  private readonly tool: HandleTool;
  private besidePhoto = false;
  private ghost: Float32Array = new Float32Array();

  constructor(host: HTMLElement) {
    this.stage = new Stage(host);
    this.stage.addPainter((pen) => paintTrajectories(pen, this.stage));
    this.stage.addPainter((pen) => paintMarkers(pen, this.stage));
    this.tool = new HandleTool(this.stage);
    this.follow();
    window.poise = { state, stage: this.stage, frame, shownJoints };
  }

  look(view: ViewName): void {
    this.stage.look(view);
  }

  home(): void {
    const joints = shownJoints.value;
    if (joints) this.stage.home(jointPosition(joints, 0));
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
      else if (state.body.value && shownJoints.value) this.stage.setPose(shownJoints.value);
    });
    effect(() => this.followMarkers());
    effect(() => this.turnForPhoto(state.workspace.value === "photo"));
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
      ? ONION_STEPS.flatMap((step) => {
          const world = solved.at(frame.value + step);
          return world ? [{ world, strength: 1 - Math.abs(step) / 16 }] : [];
        })
      : [];
    this.stage.setSkins(skins);
  }
}

declare global {
  interface Window {
    /** For tests: what is on the stage. */
    poise: { state: typeof state; stage: Stage; frame: typeof frame; shownJoints: typeof shownJoints };
  }
}
