/** The video that a motion was found in: beside the body, or over it, which is then seen from the video's camera. */
import { effect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { clock, frame } from "../shown";
import * as state from "../state";
import { openVideo } from "../stage/video";
import { Section, Segmented, Slider } from "./ui";

const VIEWS = [
  { value: "beside", label: "Beside", hint: "The video beside the body" },
  { value: "over", label: "Over", hint: "The video over the body, from its camera" },
  { value: "off", label: "Off", hint: "No video" },
] as const;

export function VideoSection(): JSX.Element | null {
  if (!state.scene.value?.video) return null;
  return (
    <Section title="Video of the motion">
      <Segmented
        label="Where the video is"
        choices={VIEWS}
        value={state.videoView.value}
        onChoose={(view) => (state.videoView.value = view)}
      />
      {state.videoView.value === "over" && (
        <Slider
          label="Strength"
          value={state.videoStrength.value}
          onMove={(strength) => (state.videoStrength.value = strength)}
        />
      )}
    </Section>
  );
}

/** Whether a view of the video is wanted, where a motion is looked at. */
export function showsVideo(view: "beside" | "over"): boolean {
  const looks = state.workspace.value === "capture" || state.workspace.value === "animate";
  return looks && !state.isLive.value && !!state.scene.value?.video && state.videoView.value === view;
}

/** The picture of the frame under the playhead. */
export function VideoPicture({ over }: { readonly over: boolean }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const upload = state.scene.value?.video?.upload;
  useEffect(() => {
    let gone = false;
    let forget = (): void => undefined;
    const show = async (): Promise<void> => {
      const address = new URL(`files/${upload}/video`, document.baseURI);
      const file = URL.createObjectURL(await (await fetch(address)).blob()); // only a whole file can be sought at once
      const video = await openVideo(file);
      video.setAttribute("aria-label", "Video of the motion");
      if (!gone) host.current?.replaceChildren(video);
      const stop = effect(() => void (video.currentTime = (frame.value + 0.5) / clock.value.fps));
      forget = () => {
        stop();
        URL.revokeObjectURL(file);
      };
      if (gone) forget();
    };
    void show().catch(() => !gone && state.notify("The browser cannot play the video of this motion."));
    return () => {
      gone = true;
      forget();
    };
  }, [upload]);
  const style = over ? { opacity: state.videoStrength.value } : {};
  return <div class={over ? "video-over" : "video-beside"} ref={host} style={style} />;
}
