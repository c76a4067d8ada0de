/** What the page knows: the server's scene and pose, and what the person is looking at. */
import { computed, signal } from "@preact/signals";
import type { Vec2, Vec3 } from "./arrays";
import type {
  BodyShown,
  Contact,
  SceneHandle,
  Joint,
  Kept,
  KeyPlace,
  LatentMap,
  LearnableKind,
  Model,
  Performing,
  SolvedPose,
  KeptPoses,
  Progress,
  Prop,
  Scene,
} from "./messages";
import { EASE, POSES } from "./messages";
import type { Motion } from "./motion";
import type { TakeData } from "./take";

export const WORKSPACES = ["pose", "animate", "photo", "capture", "learn"] as const;
export type Workspace = (typeof WORKSPACES)[number];
export type Tool = "drag" | "move" | "rotate";

export interface PoseShown extends SolvedPose {
  readonly joints: Float32Array;
  readonly points: Float32Array;
}

export interface Notice {
  readonly id: number;
  readonly kind: "error" | "info";
  readonly words: string;
  /** What can be done about it; the notice then waits for an answer. */
  readonly offer?: { readonly label: string; readonly take: () => void } | undefined;
}

/** How the video of the motion is seen: beside the body, over it from its own camera, or not. */
export const videoView = signal<"beside" | "over" | "off">("beside");
export const videoStrength = signal(0.5);

export const models = signal<readonly Model[]>([]);
/** What can be learned and read here, plugins included. */
/** A table to fill in for each kind of constraint, those of plugins among them. */
export const constraintTables = signal<readonly string[]>([]);
export const learnable = signal<readonly LearnableKind[]>([]);
export const motionFiles = signal<readonly string[]>([]);
export const takeFiles = signal<readonly string[]>([]);
export const body = signal<BodyShown | null>(null);
export const scene = signal<Scene | null>(null);
export const pose = signal<PoseShown | null>(null);
export const ghostOf = signal<string | null>(null);
export const latentMap = signal<LatentMap | null>(null);
export const motion = signal<Motion | null>(null);
export const take = signal<TakeData | null>(null);
/** A live performance, from its start until another begins. */
export const performing = signal<Performing | null>(null);
export const photoPixels = signal<Float32Array | null>(null);
/** An alternative under the pointer, shown as a ghost. */
export const offered = signal<Float32Array | null>(null);
export const alternatives = signal<readonly Float32Array[]>([]);
/** The newest message that streams; the pose that answers it has the same number. */
export const asked = signal(0);
export const learningCurve = signal<readonly number[]>([]);
export const progress = signal<ReadonlyMap<string, Progress>>(new Map());
/** Scenes of this browser's earlier sessions that can be taken up again. */
/** The library of poses, once it was asked for. */
export const poses = signal<KeptPoses | null>(null);
/** When feet stand and hands hold on, in the motion that is shown. */
export const contacts = signal<readonly Contact[]>([]);
export const kept = signal<readonly Kept[]>([]);
export const notices = signal<readonly Notice[]>([]);

export const workspace = signal<Workspace>("pose");
export const tool = signal<Tool>("drag");
/** Whether the next drag on the stage draws a box that selects. */
export const boxing = signal(false);
/** A prop that the gizmo moves. */
export const selectedProp = signal<string | null>(null);
/** Where a prop under the hand is: ahead of the scene. */
export const draggedProp = signal<Prop | null>(null);
/** Whether the gizmo has the joint's axes, not the world's. */
export const localAxes = signal(false);
/** A handle, or in the Rotate tool a joint that has none. */
export const selected = signal<string | null>(null);
/** What is selected besides. */
export const alsoSelected = signal<ReadonlySet<string>>(new Set());
export const selectedMarker = signal<string | null>(null);
export const selectedKeys = signal<readonly KeyPlace[]>([]);
/** Keys that were copied; none where the pose was. */
export const copiedKeys = signal<readonly KeyPlace[]>([]);
export const selectedContact = signal<Contact | null>(null);
/** A range of the timeline: its first and last frame. */
export const range = signal<readonly [number, number] | null>(null);
export const showGraph = signal(false);
export const showContacts = signal(true);
/** Paste and the library change the selected joints alone. */
export const onlySelected = signal(false);
export const playing = signal(false);
export const autoKey = signal(true);
/** Seconds, and frames, to either side over which a key changes a recording. */
export const easeSeconds = signal(EASE);
export const ease = computed(() => Math.round(easeSeconds.value * (scene.value?.timeline.fps ?? 30)));
export const onion = signal(false);
export const showHelp = signal(false);
export const showGhost = signal(true);
export const holdHandles = signal(true);

/** Where the handle under the hand is wanted: ahead of what the server has answered. */
export const dragged = signal<{ readonly id: string; readonly position: Vec3 } | null>(null);
/** Where the pose lies in the style's space, as far as that is known. */
export const latentPlace = signal<Vec2 | null>(null);
export const latentCursor = signal<Vec2 | null>(null);

export const model = computed<Model | null>(() => {
  const id = scene.value?.model;
  return models.value.find((candidate) => candidate.id === id) ?? null;
});

/** Whether the body follows a performer, or is about to. */
export const isLive = computed(() => performing.value !== null && performing.value.step !== "over");

export const handles = computed<readonly SceneHandle[]>(() => scene.value?.handles ?? []);

export const selectedHandle = computed<SceneHandle | null>(
  () => handles.value.find((handle) => handle.id === selected.value) ?? null,
);

/** The joints that are selected, by name. */
export const selectedJoints = computed<readonly string[]>(() => {
  const ids = selected.value === null ? [] : [selected.value, ...alsoSelected.value];
  return [...new Set(ids)].map((id) => handles.value.find((handle) => handle.id === id)?.joint ?? id);
});

/** Whether whole poses make the motion, or would make it: there is none yet. */
export const isPosed = computed(() => {
  const timeline = scene.value?.timeline;
  return timeline?.clip === POSES || (!timeline?.clip && !timeline?.keys.length && !timeline?.pins.length);
});

export const isKeying = computed(() => workspace.value === "animate" && autoKey.value);

export function select(id: string | null, more = false): void {
  const others = new Set(more ? alsoSelected.value : []);
  if (more && selected.value && selected.value !== id) others.add(selected.value);
  if (id) others.delete(id);
  alsoSelected.value = others;
  selectedProp.value = null;
  selected.value = id;
}

/** Selects several at once; the last of them is the one that the gizmo stands at. */
export function selectAll(ids: readonly string[], more = false): void {
  if (!more) select(null);
  ids.forEach((id) => select(id, true));
}

/** Props as they are shown: the one under the hand where that is. */
export const props = computed<readonly Prop[]>(() => {
  const held = draggedProp.value;
  return (scene.value?.props ?? []).map((prop) => (prop.id === held?.id ? held : prop));
});

export function selectProp(id: string | null): void {
  selectedProp.value = id;
  if (id) selected.value = null;
  if (id && tool.value === "drag") tool.value = "move";
}

export function jointNumber(name: string): number {
  return body.value?.joints.findIndex((joint) => joint.name === name) ?? -1;
}

/** A name a person reads: the role where the joint has one, as in "left hand". */
export function jointLabel(joint: Joint | undefined): string {
  if (!joint) return "";
  return joint.role ? joint.role.replaceAll("_", " ") : joint.name.replaceAll("_", " ");
}

export function labelOf(name: string): string {
  return jointLabel(body.value?.joints.find((joint) => joint.name === name)) || name;
}

/** Whether a handle is on a palm, fingertips or a sole. */
export const isSkin = (id: string): boolean => body.value?.surfaces.includes(id) ?? false;

/** A handle on a palm, fingertips or a sole has its name; others have their joint's. */
export function handleLabel({ id, joint }: { readonly id: string; readonly joint: string }): string {
  return isSkin(id) ? id.replaceAll("_", " ") : labelOf(joint);
}

let nextNotice = 1;

export function notify(words: string, kind: Notice["kind"] = "error", offer?: Notice["offer"]): void {
  if (notices.value.some((notice) => notice.words === words)) return;
  const id = nextNotice;
  nextNotice += 1;
  notices.value = [...notices.value.slice(-2), { id, kind, words, offer }];
  if (!offer) setTimeout(() => dismiss(id), kind === "error" ? 9000 : 4000);
}

export function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}
