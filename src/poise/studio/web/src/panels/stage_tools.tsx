/** The tools beside the stage, and the views below it. */
import type { JSX } from "preact";
import { Eye, FlipVertical2, Footprints, Ghost, Hand, Move3d, Rotate3d, RotateCcw, Scan } from "lucide-preact";
import { jointPosition, jointRotation } from "../arrays";
import { Quaternion, Vector3 } from "three";
import { VIEWS } from "../stage/views";
import * as state from "../state";
import { mirror, reset, setFeet, setLookAt } from "../studio";
import { IconButton } from "./ui";
import { ViewMenu } from "./view_menu";

const LOOK_DISTANCE = 0.9; // metres before the face at which what it looks at appears

export function StageTools(): JSX.Element {
  const scene = state.scene.value;
  const planted = scene?.feet === "planted";
  return (
    <div class="stage-tools float" role="toolbar" aria-label="Tools" aria-orientation="vertical">
      <IconButton
        label="Drag"
        hint="Drag handles in the plane of the view (Q)"
        icon={Hand}
        pressed={state.tool.value === "drag"}
        onPress={() => (state.tool.value = "drag")}
      />
      <IconButton
        label="Move"
        hint="Move the handle along axes (W)"
        icon={Move3d}
        pressed={state.tool.value === "move"}
        onPress={() => (state.tool.value = "move")}
      />
      <IconButton
        label="Rotate"
        hint="Turn the handle (E)"
        icon={Rotate3d}
        pressed={state.tool.value === "rotate"}
        onPress={() => (state.tool.value = "rotate")}
      />
      <hr />
      <IconButton
        label="Feet stick to the floor"
        hint="Feet stay planted where they are"
        icon={Footprints}
        pressed={planted}
        onPress={() => setFeet(planted ? "above" : "planted")}
      />
      <IconButton
        label="Look at a point"
        hint="The head looks at a point you can drag"
        icon={Eye}
        pressed={!!scene?.lookAt}
        onPress={toggleLookAt}
      />
      <IconButton label="Mirror" hint="Mirror left and right (M)" icon={FlipVertical2} onPress={mirror} />
      <IconButton label="Reset" hint="Reset to the model's own pose (Shift+R)" icon={RotateCcw} onPress={reset} />
      <IconButton
        label="Ghost of the previous result"
        hint="Show the result of the previous model behind this one (G)"
        icon={Ghost}
        pressed={state.showGhost.value}
        onPress={() => (state.showGhost.value = !state.showGhost.value)}
      />
    </div>
  );
}

function toggleLookAt(): void {
  const joints = state.pose.value?.joints;
  if (state.scene.value?.lookAt || !joints) return setLookAt(null);
  const head = Math.max(state.body.value?.joints.findIndex((joint) => joint.role === "head") ?? 0, 0);
  setLookAt(beforeTheFace(joints, head));
}

/** The pelvis tells where a person faces even where a skeleton's head axes do not. */
function beforeTheFace(joints: Float32Array, head: number): [number, number, number] {
  const [w, x, y, z] = jointRotation(joints, 0);
  const forward = new Vector3(0, 0, 1)
    .applyQuaternion(new Quaternion(x, y, z, w))
    .setY(0)
    .normalize();
  const target = new Vector3(...jointPosition(joints, head)).addScaledVector(forward, LOOK_DISTANCE);
  return [target.x, target.y, target.z];
}

export function ViewTools(): JSX.Element {
  return (
    <div class="view-tools float" role="toolbar" aria-label="Views">
      {VIEWS.map((view, number) => (
        <button
          type="button"
          key={view}
          title={`View: ${view} (${number + 1})`}
          onClick={() => window.poise.stage.look(view)}
        >
          {view === "perspective" ? "3D" : view}
        </button>
      ))}
      <IconButton
        label="Frame"
        hint="Bring the selection or the body into view (F)"
        icon={Scan}
        onPress={() => window.poise.frameSelection()}
      />
      <ViewMenu />
    </div>
  );
}
