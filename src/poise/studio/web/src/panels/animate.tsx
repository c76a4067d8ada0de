/** The animate panel: what to do, handles, styles; the timeline is below. */
import type { JSX } from "preact";
import { FolderOpen, UserRoundCheck } from "lucide-preact";
import { openFile, openOnto } from "../files";
import * as state from "../state";
import { Blend } from "./blend";
import { HandsSection } from "./hands";
import { HandleList } from "./handle_list";
import { Library } from "./library";
import { PropsSection } from "./props";
import { StyleSpace } from "./style_space";
import { PickFiles, Section } from "./ui";
import { VideoSection } from "./video";

export function AnimatePanel(): JSX.Element {
  const timeline = state.scene.value?.timeline;
  const made = state.isPosed.value ? "from pose to pose" : (timeline?.clip ?? "from keys of handles");
  return (
    <>
      <Section title="Motion" aside={<span class="quiet">{made}</span>}>
        {!timeline?.keys.length && !timeline?.poses.length && !timeline?.clip && (
          <ol class="steps">
            <li>Pose the body. The pose is keyed at this frame.</li>
            <li>Move the playhead and pose the body again.</li>
            <li>Press Space to play the motion between.</li>
          </ol>
        )}
        <PickFiles
          label="Start from a clip"
          icon={FolderOpen}
          accept={state.motionFiles.value.join(",")}
          onFiles={(files) => files.slice(0, 1).forEach((file) => void openFile(file))}
        />
        <PickFiles
          label="Clip onto this body"
          icon={UserRoundCheck}
          kind="quiet"
          accept={state.motionFiles.value.join(",")}
          onFiles={(files) => files.slice(0, 1).forEach((file) => void openOnto(file))}
        />
      </Section>
      <VideoSection />
      <HandleList />
      <HandsSection />
      <Library />
      <PropsSection />
      <Blend />
      <StyleSpace />
    </>
  );
}
