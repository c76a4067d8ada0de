/** Files in and out: what is opened or dropped on the page, and what is saved. */
import * as state from "./state";
import { listen, say } from "./studio";
import { upload } from "./upload";
import { addToLearn } from "./panels/learn";
import { openPhoto } from "./panels/photo";

const IMAGES = /\.(png|jpe?g|webp|bmp)$/i;
const VIDEOS = /\.(mp4|mov|avi|mkv)$/i;
const SCENES = /\.scene$/i;
const POSES = /\.poses$/i;
const MODELS = /\.poise$/i;

const hasExtension = (file: File, extensions: readonly string[]): boolean =>
  extensions.some((extension) => file.name.toLowerCase().endsWith(extension));

export async function openFile(file: File): Promise<void> {
  const isMotion = hasExtension(file, state.motionFiles.value);
  const isTake = hasExtension(file, state.takeFiles.value);
  if (IMAGES.test(file.name)) return openPhoto(file);
  if (isTake && state.workspace.value !== "learn") return openAs(file, "openTake", "capture");
  if (isMotion && state.workspace.value !== "learn") return openAs(file, "openClip", "animate");
  if (VIDEOS.test(file.name)) return openAs(file, "openVideo", "capture");
  if (SCENES.test(file.name)) return openAs(file, "openScene", null);
  if (POSES.test(file.name)) return openAs(file, "openPoses", null);
  if (MODELS.test(file.name)) return openAs(file, "openModel", null);
  if (isMotion || isTake) {
    addToLearn([file]);
    return;
  }
  state.notify(
    `${file.name} is of no kind the studio opens: motions (BVH, AMC), takes (C3D, TRC), videos (MP4), pictures (PNG, JPEG), models and scenes.`,
  );
}

async function openAs(
  file: File,
  type: "openTake" | "openVideo" | "openClip" | "openScene" | "openModel" | "openPoses",
  workspace: state.Workspace | null,
): Promise<void> {
  const id = await upload(file);
  if (!id) return;
  say({ type, upload: id });
  if (workspace) state.workspace.value = workspace;
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
});
