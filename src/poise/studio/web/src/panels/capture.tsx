/** Capture: a take of markers, its gaps, and how well they were filled. */
import type { JSX } from "preact";
import { EyeOff, FolderOpen, Eye, Video, Wand2 } from "lucide-preact";
import { openFile } from "../files";
import { frame } from "../shown";
import { centimetres } from "../stage/handle_marks";
import * as state from "../state";
import { say } from "../studio";
import type { TakeData } from "../take";
import { Live } from "./live";
import { Button, PickFiles, Section } from "./ui";
import { VideoSection } from "./video";
import { Webcam, webcam } from "./webcam";

const HIDE_SECONDS = 0.5;

export function CapturePanel(): JSX.Element {
  const take = state.take.value;
  return (
    <>
      <Section title="Take" aside={<span class="quiet">{take?.name}</span>}>
        {!take && (
          <p class="empty">
            Open a recording of markers, or drop it on the page: gaps are filled by a style learned from the take
            itself. Or open a video of a person without markers: the body comes to the timeline.
          </p>
        )}
        {take && <TakeFacts take={take} />}
        <div class="row">
          <PickFiles
            label="Open a take"
            icon={FolderOpen}
            accept={state.takeFiles.value.join(",")}
            kind={take ? "plain" : "primary"}
            onFiles={(files) => files.slice(0, 1).forEach((file) => void openFile(file))}
          />
          <PickFiles
            label="Open a video"
            icon={Video}
            accept="video/mp4,.mp4,.mov,.avi,.mkv"
            kind="plain"
            onFiles={(files) => files.slice(0, 1).forEach((file) => void openFile(file))}
          />
          {take && (
            <Button label="Fill the gaps" icon={Wand2} kind="primary" onPress={() => say({ type: "fillTake" })} />
          )}
        </div>
      </Section>
      <VideoSection />
      <Webcam />
      {webcam.value === null && <Live key={take ? "beside a take" : "alone"} closed={take !== null} />}
      {take && <Markers take={take} />}
    </>
  );
}

function TakeFacts({ take }: { take: TakeData }): JSX.Element {
  const gaps = take.markers.map((_, number) => take.gaps(number));
  const missing = take.markers.reduce((sum, _, number) => sum + take.missing(number), 0);
  const share = (100 * missing) / (take.frames * take.markers.length);
  return (
    <dl class="facts">
      <div>
        <dt>length</dt>
        <dd>
          {(take.frames / take.fps).toFixed(1)} s at {take.fps.toFixed(0)} fps
        </dd>
      </div>
      <div>
        <dt>markers</dt>
        <dd>{take.markers.length}</dd>
      </div>
      <div>
        <dt>gaps</dt>
        <dd>
          {gaps.flat().length} ({share.toFixed(1)} % missing)
        </dd>
      </div>
    </dl>
  );
}

function Markers({ take }: { take: TakeData }): JSX.Element {
  const now = Math.min(frame.value, take.frames - 1);
  return (
    <Section title="Markers">
      <ul class="markers">
        {take.byGaps.map((number) => {
          const name = take.markers[number]!;
          const shown = take.marker(now, number);
          const seen = take.seen(now, number);
          return (
            <li key={name} class={state.selectedMarker.value === name ? "chosen" : ""}>
              <button type="button" class="name" onClick={() => (state.selectedMarker.value = name)}>
                <span class={`bead ${seen ? "seen" : shown ? "filled" : "gone"}`} aria-hidden="true" />
                {name}
              </button>
              <span class="quiet">{seen ? "" : shown ? `± ${centimetres(shown.deviation)}` : "missing"}</span>
              <Hide marker={name} seen={seen} take={take} />
            </li>
          );
        })}
      </ul>
    </Section>
  );
}

/** Hides the marker for a while from this frame on: what the model would have made of a longer gap. */
function Hide({ marker, seen, take }: { marker: string; seen: boolean; take: TakeData }): JSX.Element {
  const first = Math.min(frame.value, take.frames - 1);
  const last = Math.min(first + Math.round(HIDE_SECONDS * take.fps), take.frames - 1);
  const label = seen ? `Hide ${marker} from here` : `Show ${marker} again`;
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={label}
      title={seen ? "Hide it for half a second from here" : "Show it again, if it was hidden"}
      onClick={() => say({ type: "hideMarker", marker, first, last, hidden: seen })}
    >
      {seen ? <Eye size={15} aria-hidden="true" /> : <EyeOff size={15} aria-hidden="true" />}
    </button>
  );
}
