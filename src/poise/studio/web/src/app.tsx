/** The page: bar above, stage in the middle, panels beside it, the timeline below. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { installShortcuts } from "./shortcuts";
import { acceptDrops } from "./files";
import { Director } from "./stage/director";
import * as state from "./state";
import { AnimatePanel } from "./panels/animate";
import { installAdvice } from "./advice";
import { Bar } from "./panels/bar";
import { CapturePanel } from "./panels/capture";
import { Help } from "./panels/help";
import { LearnPanel } from "./panels/learn";
import { PhotoPanel, PhotoStage } from "./panels/photo";
import { PosePanel } from "./panels/pose";
import { ModelSwitch } from "./panels/model_switch";
import { StageTools, ViewTools } from "./panels/stage_tools";
import { VideoPicture, showsVideo } from "./panels/video";
import { Readout } from "./panels/readout";
import { Words } from "./panels/words";
import { Timeline } from "./timeline/timeline";

const PANELS: Record<state.Workspace, () => JSX.Element> = {
  pose: PosePanel,
  animate: AnimatePanel,
  photo: PhotoPanel,
  capture: CapturePanel,
  learn: LearnPanel,
};

/** Whether the panel is folded away, where the page is narrow. */
const folded = signal(false);

export function App(): JSX.Element {
  useEffect(acceptDrops, []);
  const Panel = PANELS[state.workspace.value];
  const timed = hasTimeline();
  return (
    <div class={`studio ${state.workspace.value} ${timed ? "timed" : ""}`}>
      <Bar />
      <StageArea />
      <aside class={`panel ${folded.value ? "folded" : ""}`} aria-label={`${state.workspace.value} panel`}>
        <button type="button" class="fold" aria-expanded={!folded.value} onClick={() => (folded.value = !folded.value)}>
          {folded.value ? "Show the panel" : "Hide the panel"}
        </button>
        <div class="sections">
          <Panel />
        </div>
      </aside>
      {timed && <Timeline />}
      <Help />
    </div>
  );
}

/** Where there is something in time to look at, or to make. */
function hasTimeline(): boolean {
  if (state.workspace.value === "animate") return true;
  return state.workspace.value === "capture" && !state.isLive.value && !!(state.take.value ?? state.motion.value);
}

function StageArea(): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const director = new Director(host.current!);
    installAdvice();
    return installShortcuts(director);
  }, []);
  return (
    <main class={`stage-area ${showsVideo("over") ? "filmed" : ""}`}>
      {state.workspace.value === "photo" && <PhotoStage />}
      {showsVideo("beside") && <VideoPicture over={false} />}
      <div class="stage" ref={host} />
      {showsVideo("over") && <VideoPicture over />}
      <ModelSwitch />
      <StageTools />
      <ViewTools />
      <Readout />
      <Words />
    </main>
  );
}
