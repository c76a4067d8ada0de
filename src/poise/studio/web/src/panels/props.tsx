/** Props: add, place and size them; handles are glued to them in their own list. */
import type { JSX } from "preact";
import { Box, Trash2 } from "lucide-preact";
import type { Vec3 } from "../arrays";
import { clamp, jointPosition } from "../arrays";
import type { Prop } from "../messages";
import { meshSize } from "../stage/props";
import { openVideo } from "../stage/video";
import { shownJoints } from "../shown";
import * as state from "../state";
import { newest, putProp, say } from "../studio";
import { degreesFromQuaternion, quaternionFromDegrees } from "../turns";
import { upload } from "../upload";
import { IconButton, NumberField, PickFiles, Section } from "./ui";

const FIRST: Record<"box" | "chair" | "shelf", { size: Vec3; position: Vec3 }> = {
  box: { size: [0.5, 0.5, 0.5], position: [0, 0, 0.7] },
  chair: { size: [0.45, 0.9, 0.45], position: [0, 0, -0.35] },
  shelf: { size: [0.9, 1.9, 0.3], position: [-0.9, 0, 0.3] },
};
const PICTURE_HEIGHT = 1.8; // metres at first
const BEHIND: Vec3 = [0, 0, -0.8];

export function PropsSection(): JSX.Element {
  const props = state.scene.value?.props ?? [];
  return (
    <Section title="Props" aside={<Add />} closed wanted={state.selectedProp.value !== null}>
      {!props.length && (
        <p class="empty">Chairs, shelves and boxes to pose with; a GLB; a picture or video to work from.</p>
      )}
      <ul class="handles">
        {props.map((prop) => (
          <Row key={prop.id} prop={prop} />
        ))}
      </ul>
      <PickFiles
        label="GLB, picture or video"
        icon={Box}
        accept=".glb,.png,.jpg,.jpeg,.webp,.mp4,.m4v,.mov,.webm"
        onFiles={(files) => files.forEach((file) => void addFile(file))}
      />
    </Section>
  );
}

function Add(): JSX.Element {
  return (
    <select
      class="add"
      aria-label="Add a prop"
      value=""
      onChange={(event) => {
        const kind = event.currentTarget.value as keyof typeof FIRST;
        add({ kind, ...FIRST[kind] });
        event.currentTarget.value = "";
      }}
    >
      <option value="">Add</option>
      {Object.keys(FIRST).map((kind) => (
        <option key={kind} value={kind}>
          {kind}
        </option>
      ))}
    </select>
  );
}

function add(prop: Pick<Prop, "kind" | "size" | "position"> & { upload?: string }): void {
  const names = new Set((state.scene.value?.props ?? []).map(({ id }) => id));
  const id = [prop.kind, ...Array.from({ length: 99 }, (_, k) => `${prop.kind} ${k + 2}`)].find((n) => !names.has(n))!;
  const [x, , z] = shownJoints.value ? jointPosition(shownJoints.value, 0) : [0, 0, 0];
  const position: Vec3 = [prop.position[0] + x, prop.position[1], prop.position[2] + z]; // beside the body
  putProp({ rotation: [1, 0, 0, 0], upload: null, ...prop, position, id }, true);
  state.selectProp(id);
}

function kindOf({ name }: File): "mesh" | "picture" | "video" {
  if (/\.glb$/i.test(name)) return "mesh";
  return /\.(mp4|m4v|mov|webm)$/i.test(name) ? "video" : "picture";
}

async function addFile(file: File): Promise<void> {
  const kind = kindOf(file);
  const address = URL.createObjectURL(file);
  const measure = { mesh: meshSize, picture: pictureSize, video: videoSize }[kind];
  const size = await measure(address).catch(() => null);
  URL.revokeObjectURL(address);
  if (!size) {
    state.notify(
      `${file.name} cannot be shown: expected a GLB with a mesh, a picture, or a video that this browser plays.`,
    );
    return;
  }
  const id = await upload(file);
  const within = size.map((metres) => clamp(metres, 0.01, 20)) as Vec3;
  if (id) add({ kind, size: within, position: kind === "mesh" ? [0, 0, 0.7] : BEHIND, upload: id });
}

const boardOf = (width: number, height: number): Vec3 => [(PICTURE_HEIGHT * width) / height, PICTURE_HEIGHT, 0.01];

async function pictureSize(address: string): Promise<Vec3> {
  const { width, height } = await createImageBitmap(await (await fetch(address)).blob());
  return boardOf(width, height);
}

async function videoSize(address: string): Promise<Vec3> {
  const { videoWidth, videoHeight } = await openVideo(address);
  return boardOf(videoWidth, videoHeight);
}

function Row({ prop }: { prop: Prop }): JSX.Element {
  const chosen = state.selectedProp.value === prop.id;
  return (
    <li class={chosen ? "chosen" : ""}>
      <div class="handle-row">
        <button
          type="button"
          class="name"
          aria-expanded={chosen}
          onClick={() => state.selectProp(chosen ? null : prop.id)}
        >
          {prop.id}
        </button>
        <IconButton
          label={`Remove ${prop.id}`}
          icon={Trash2}
          onPress={() => say({ type: "removeProp", id: prop.id })}
        />
      </div>
      {chosen && <Inspector prop={prop} />}
    </li>
  );
}

function Inspector({ prop: known }: { prop: Prop }): JSX.Element {
  const prop = newest(known);
  const [, turn] = degreesFromQuaternion(prop.rotation);
  return (
    <div class="inspector">
      <Fields label="Position" values={prop.position} onEnter={(position) => putProp({ ...prop, position }, true)} />
      <Fields
        label="Size"
        letters="WHD"
        values={prop.size}
        low={1}
        onEnter={(size) => putProp({ ...prop, size }, true)}
      />
      <div class="fields">
        <NumberField
          prefix="turn"
          label="Turn of the prop in degrees"
          digits={0}
          low={-360}
          high={360}
          value={turn}
          onEnter={(degrees) => putProp({ ...prop, rotation: quaternionFromDegrees([0, degrees, 0]) }, true)}
        />
        <span class="unit">°</span>
      </div>
    </div>
  );
}

function Fields(props: {
  label: string;
  letters?: string;
  values: Vec3;
  low?: number;
  onEnter: (values: Vec3) => void;
}): JSX.Element {
  return (
    <div class="fields" role="group" aria-label={`${props.label} of the prop in centimetres`}>
      {(["X", "Y", "Z"] as const).map((axis, number) => (
        <NumberField
          key={axis}
          prefix={props.letters?.[number] ?? axis}
          digits={0}
          low={props.low ?? -1000}
          label={`${props.label} ${axis} in centimetres`}
          value={props.values[number]! * 100}
          onEnter={(value) => props.onEnter(props.values.map((old, k) => (k === number ? value / 100 : old)) as Vec3)}
        />
      ))}
      <span class="unit">cm</span>
    </div>
  );
}
