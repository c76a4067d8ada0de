/** A motion in a Jupyter notebook: the studio's stage with a playhead, as an anywidget. */
import { decode } from "@msgpack/msgpack";
import type { BodyShown, MotionRange } from "./messages";
import { Motion } from "./motion";
import { DARK, LIGHT } from "./palettes";
import { Stage } from "./stage/stage";

interface Model {
  get(trait: "body" | "range"): DataView;
  get(trait: "fps" | "height"): number;
}

const COLUMN = "display:flex; flex-direction:column; gap:6px; overflow:hidden";
const CONTROLS = "display:flex; gap:8px; align-items:center";
const LAYER = "position:absolute; inset:0";

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const body = read<BodyShown>(model.get("body"));
  const range = read<MotionRange>(model.get("range"));
  const motion = new Motion(range.frames, body.placed).with(range);
  el.style.cssText += `${COLUMN}; height:${model.get("height")}px`;
  const host = document.createElement("div");
  host.style.cssText = "position:relative; flex:1; min-height:0";
  el.append(host);
  const stage = new Stage(host);
  stage.paint(isDark() ? DARK : LIGHT);
  stage.canvas.setAttribute("aria-label", "The body: drag to turn, scroll to zoom");
  stage.canvas.style.cssText += LAYER;
  (stage.canvas.nextElementSibling as HTMLElement).style.cssText = `${LAYER}; pointer-events:none`;
  stage.setBody(body);
  const show = (frame: number): void => stage.setPose(motion.at(frame)!);
  show(0);
  if (motion.frames > 1) el.append(controls(motion.frames, model.get("fps"), show));
  return () => stage.dispose();
}

function read<M>(bytes: DataView): M {
  return decode(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)) as M;
}

/** JupyterLab says which theme it has; elsewhere the system's is taken. */
function isDark(): boolean {
  const light = document.body.dataset["jpThemeLight"];
  return light === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : light === "false";
}

/** A button to play, and a slider over the frames. */
function controls(frames: number, fps: number, show: (frame: number) => void): HTMLElement {
  const bar = document.createElement("div");
  bar.style.cssText = CONTROLS;
  const button = document.createElement("button");
  const slider = Object.assign(document.createElement("input"), { type: "range", min: "0", max: `${frames - 1}` });
  slider.value = "0";
  slider.style.flex = "1";
  slider.setAttribute("aria-label", "Frame");
  let began = 0;
  const name = (): void => {
    button.textContent = began ? "\u23F8" : "\u25B6";
    button.setAttribute("aria-label", began ? "Pause" : "Play");
  };
  const step = (now: number): void => {
    if (!began || !bar.isConnected) return;
    slider.value = `${Math.floor((Math.max(now - began, 0) / 1000) * fps) % frames}`;
    show(Number(slider.value));
    requestAnimationFrame(step);
  };
  button.onclick = () => {
    began = began ? 0 : performance.now() - (Number(slider.value) / fps) * 1000;
    name();
    requestAnimationFrame(step);
  };
  slider.oninput = () => {
    began = 0;
    name();
    show(Number(slider.value));
  };
  name();
  bar.append(button, slider);
  return bar;
}

export default { render };
