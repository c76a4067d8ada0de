/** Files in and out: what is opened or dropped on the page, and what is saved. */
import type { Opening } from "./messages";
import * as state from "./state";
import { listen, say } from "./studio";
import { type Arriving, arriving, upload } from "./upload";
import { addToLearn } from "./panels/learn";
import { openPhoto } from "./panels/photo";

const IMAGES = /\.(png|jpe?g|webp|bmp)$/i;
const VIDEOS = /\.(mp4|mov|avi|mkv)$/i;
const SCENES = /\.scene$/i;
const POSES = /\.poses$/i;
const MODELS = /\.poise$/i;

const SCRIPTS = /\.toml$/i;

const hasExtension = (file: { readonly name: string }, extensions: readonly string[]): boolean =>
  extensions.some((extension) => file.name.toLowerCase().endsWith(extension));

export async function openFile(file: File): Promise<void> {
  const isKnown = hasExtension(file, state.motionFiles.value) || hasExtension(file, state.takeFiles.value);
  if (state.workspace.value === "learn" && isKnown) addToLearn([file]);
  else await open(arriving(file));
}

/** Files to open once the scene of the page is there. */
const named: Opening[] = [];

/** A file that was named as the studio was started is on the server already. */
function openNamed({ name, upload: id }: Opening): Promise<void> {
  const address = new URL(`files/${id}/${encodeURIComponent(name)}`, document.baseURI);
  return open({ name, send: () => Promise.resolve(id), read: async () => (await fetch(address)).blob() });
}

async function open(file: Arriving): Promise<void> {
  if (IMAGES.test(file.name)) return openPhoto(file);
  if (hasExtension(file, state.takeFiles.value)) return openAs(file, "openTake", "capture");
  if (hasExtension(file, state.motionFiles.value)) return openAs(file, "openClip", null);
  if (VIDEOS.test(file.name)) return openAs(file, "openVideo", "capture");
  if (SCENES.test(file.name)) return openAs(file, "openScene", null);
  if (SCRIPTS.test(file.name)) return openAs(file, "openScript", "animate");
  if (POSES.test(file.name)) return openAs(file, "openPoses", null);
  if (MODELS.test(file.name)) return openAs(file, "openModel", null);
  state.notify(
    `${file.name} is of no kind the studio opens: motions (BVH, AMC), characters (GLB, VRM, FBX, USD), takes (C3D, TRC), videos (MP4), pictures (PNG, JPEG), models, scenes and keyframe scripts (TOML).`,
  );
}

async function openAs(
  file: Arriving,
  type: "openTake" | "openVideo" | "openClip" | "openScene" | "openScript" | "openModel" | "openPoses",
  workspace: state.Workspace | null,
): Promise<void> {
  const id = await file.send();
  if (!id) return;
  say({ type, upload: id });
  if (workspace) state.workspace.value = workspace;
  if (type === "openClip") whenOpened();
}

/** A clip is looked at on the timeline, a character that does not move on the stage. */
function whenOpened(): void {
  const over = listen((message) => {
    if (message.type === "error") over();
    if (message.type !== "scene") return;
    state.workspace.value = message.scene.moving ? "animate" : "pose";
    over();
  });
}

/** A clip of whatever skeleton, carried over to the body that is shown. */
export async function openOnto(file: File): Promise<void> {
  const id = await upload(file);
  if (id) say({ type: "openClip", upload: id, ontoBody: true });
}

/** What is dropped anywhere on the page is opened. */
export function acceptDrops(): () => void {
  const over = (event: DragEvent): void => event.preventDefault();
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    for (const file of event.dataTransfer?.files ?? []) void openFile(file);
  };
  window.addEventListener("dragover", over);
  window.addEventListener("drop", drop);
  return () => {
    window.removeEventListener("dragover", over);
    window.removeEventListener("drop", drop);
  };
}

/** Hands a finished file to the browser, which saves it. */
function save(address: string, name: string): void {
  const link = document.createElement("a");
  link.href = new URL(address, document.baseURI).href;
  link.download = name;
  link.click();
}

/** The stage as it is seen, without the handles. */
export function savePicture(): void {
  const { stage } = window.poise;
  stage.draw(1);
  stage.canvas.toBlob((picture) => {
    if (!picture) return;
    const address = URL.createObjectURL(picture);
    save(address, `${(state.model.value?.name ?? "pose").replace(/[^\w()+-]+/g, "-")}.png`);
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }, "image/png");
}

listen((message) => {
  if (message.type === "file") save(message.address, message.name);
  if (message.type === "welcome") named.push(...message.openings);
  if (message.type === "pose") for (const file of named.splice(0)) void openNamed(file);
});
