/** Live: the body follows a performer, from a stream of markers, videos or cameras, with the latency shown. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { Camera, CircleStop, FileCog, FileVideo, Radio } from "lucide-preact";
import { floats } from "../arrays";
import type { Model, Perform, Performing } from "../messages";
import * as state from "../state";
import { say } from "../studio";
import { upload } from "../upload";
import { Button, PickFiles, type PickFilesProps, Section, Segmented } from "./ui";

type Source = "stream" | "videos" | "cameras";

const SOURCES: readonly { value: Source; label: string; hint: string }[] = [
  { value: "stream", label: "Stream", hint: "Markers that a tracker sends over the network" },
  { value: "videos", label: "Videos", hint: "Recorded videos, one of each camera, as if they were live" },
  { value: "cameras", label: "Cameras", hint: "Cameras of this machine" },
];

type Sync = NonNullable<Perform["sync"]>;

const SYNCS: Record<Sync, string> = {
  time: "as they were started",
  flash: "by a flash",
  motion: "by what moves",
};

const source = signal<Source>("stream");
const chosenModel = signal<string | null>(null);
const port = signal("9000");
const numbers = signal("0, 1");
const videos = signal<readonly File[]>([]);
const cameraFile = signal<File | null>(null);
const mapping = signal<File | null>(null);
const sync = signal<Sync>("time");
const hue = signal("");

export function Live({ closed }: { closed: boolean }): JSX.Element {
  const models = state.models.value.filter((model) => model.kind === "local");
  const now = state.performing.value;
  return (
    <Section
      title="Live performance"
      closed={closed && !state.isLive.value}
      aside={now && state.isLive.value && <Lamp step={now.step} />}
    >
      {!models.length && (
        <p class="empty">
          The body follows the nearest of recorded poses: learn a model of the kind Local first, from motions like those
          to come.
        </p>
      )}
      {models.length > 0 && (state.isLive.value ? <Running now={now!} /> : <Setup models={models} />)}
      {now && !state.isLive.value && now.frames > 0 && (
        <p class="quiet">
          {now.frames} frames were kept: Space plays them, and the File menu exports them as a motion.
        </p>
      )}
      {now?.notes.map((note) => (
        <p class="note" key={note} role="status">
          {note}
        </p>
      ))}
    </Section>
  );
}

const STEPS: Record<Performing["step"], string> = {
  preparing: "Preparing",
  waiting: "Waiting for markers",
  following: "Following",
  over: "Over",
};

function Lamp({ step }: { step: Performing["step"] }): JSX.Element {
  return (
    <span class={`lamp ${step}`} role="status">
      {STEPS[step]}
    </span>
  );
}

function Setup({ models }: { models: readonly Model[] }): JSX.Element {
  const model = models.find(({ id }) => id === chosenModel.value) ?? models[0]!;
  const missing = lacking();
  return (
    <>
      <Segmented
        label="Where markers come from"
        choices={SOURCES}
        value={source.value}
        onChoose={(value) => (source.value = value)}
      />
      <label class="field">
        Model
        <select
          aria-label="Local model to follow with"
          value={model.id}
          onChange={(event) => (chosenModel.value = event.currentTarget.value)}
        >
          {models.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {source.value === "stream" && <StreamFields />}
      {source.value === "videos" && <VideoFields />}
      {source.value === "cameras" && <CameraFields />}
      <Button
        label="Start"
        icon={source.value === "stream" ? Radio : Camera}
        kind="primary"
        disabled={missing !== null}
        hint={missing ?? "The body follows until you stop"}
        onPress={() => void start(model.id)}
      />
      {missing && <p class="quiet">{missing}</p>}
    </>
  );
}

function StreamFields(): JSX.Element {
  return (
    <>
      <TextField label="UDP port or feed" value={port.value} onInput={(value) => (port.value = value)} />
      <p class="quiet">
        A frame is a line of JSON: <code>{'{"left_hand": [0.4, 1.1, 0.2], "head": null}'}</code>, in metres, Y up.
        Unmapped, markers are hands, feet, upper arms, waist and forehead.
      </p>
      <FileRow
        label="Mapping of labels"
        icon={FileCog}
        accept=".toml"
        chosen={mapping.value?.name}
        onFiles={([file]) => (mapping.value = file ?? null)}
      />
    </>
  );
}

function VideoFields(): JSX.Element {
  return (
    <>
      <FileRow
        label="Choose videos"
        icon={FileVideo}
        accept=".avi,.mp4,.mov,.mkv"
        several
        chosen={videos.value.map((file) => file.name).join(", ")}
        onFiles={(files) => (videos.value = files)}
      />
      <label class="field">
        In step
        <select
          aria-label="How videos are aligned"
          value={sync.value}
          onChange={(event) => (sync.value = event.currentTarget.value as Sync)}
        >
          {Object.entries(SYNCS).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <Colours />
      <CameraFile />
    </>
  );
}

function CameraFields(): JSX.Element {
  return (
    <>
      <TextField label="Camera numbers" value={numbers.value} onInput={(value) => (numbers.value = value)} />
      <Colours />
      <CameraFile />
      <p class="quiet">Leave the room for the first second. The studio records the background then.</p>
    </>
  );
}

function Colours(): JSX.Element {
  return (
    <TextField
      label="Colours of markers"
      hint="LFIN=red,RFIN=green"
      value={hue.value}
      onInput={(value) => (hue.value = value)}
    />
  );
}

function CameraFile(): JSX.Element {
  return (
    <FileRow
      label="Camera file"
      icon={FileCog}
      accept=".toml"
      chosen={cameraFile.value?.name ?? "from poise cameras calibrate"}
      onFiles={([file]) => (cameraFile.value = file ?? null)}
    />
  );
}

/** A button that asks for files, and what was chosen. */
function FileRow({ chosen, ...pick }: PickFilesProps & { chosen: string | undefined }): JSX.Element {
  return (
    <div class="row">
      <PickFiles {...pick} />
      <span class="quiet">{chosen}</span>
    </div>
  );
}

function TextField({
  label,
  hint,
  value,
  onInput,
}: {
  label: string;
  hint?: string;
  value: string;
  onInput: (value: string) => void;
}): JSX.Element {
  return (
    <label class="field">
      {label}
      <input class="text" placeholder={hint} value={value} onInput={(event) => onInput(event.currentTarget.value)} />
    </label>
  );
}

function cameraNumbers(): number[] {
  return numbers.value
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(Number);
}

/** What is still to be given before it can start, in words. */
function lacking(): string | null {
  if (source.value === "stream") return port.value.trim() ? null : "Give the port that markers are sent to.";
  if (source.value === "videos" && !videos.value.length) return "Choose a video of each camera, in their order.";
  if (source.value === "cameras" && !cameraNumbers().every((number) => Number.isInteger(number) && number >= 0))
    return "Cameras are numbered from 0: 0, 1.";
  return cameraFile.value ? null : "Choose the camera file that calibration wrote.";
}

async function start(model: string): Promise<void> {
  const message: Perform = { type: "perform", model };
  if (source.value === "stream") {
    message.stream = port.value.trim();
    message.mapping = mapping.value && (await upload(mapping.value));
  } else {
    message.rig = cameraFile.value && (await upload(cameraFile.value));
    if (!message.rig) return;
    message.hue = hue.value.trim();
    if (source.value === "cameras") message.cameras = cameraNumbers();
    else {
      const sent = await Promise.all(videos.value.map(upload));
      if (sent.some((id) => id === null)) return;
      message.videos = sent as string[];
      message.sync = sync.value;
    }
  }
  say(message);
}

function Running({ now }: { now: Performing }): JSX.Element {
  return (
    <>
      <Figures now={now} />
      <Button
        label="Stop"
        icon={CircleStop}
        kind="primary"
        hint="End the performance; it is then on the timeline"
        onPress={() => say({ type: "stopPerforming" })}
      />
    </>
  );
}

function Figures({ now }: { now: Performing }): JSX.Element {
  const seen = seenMarkers(now.places);
  return (
    <dl class="facts" aria-label="State of the performance">
      <Fact name="latency" hint="From a frame's arrival to its pose: the median, and the slowest of 20">
        {now.latency === null ? "–" : `${now.latency.toFixed(1)} ms, 95 % within ${now.slowest?.toFixed(1)} ms`}
      </Fact>
      <Fact name="markers" hint="How many are visible now">
        {now.markers.length ? `${seen} of ${now.markers.length}` : "–"}
      </Fact>
      <Fact name="rate" hint="Poses a second">
        {now.rate > 0 ? `${now.rate.toFixed(0)} a second` : "–"}
      </Fact>
      <Fact name="from" hint="Where markers come from">
        {now.source}
      </Fact>
    </dl>
  );
}

function Fact({ name, hint, children }: { name: string; hint: string; children: string }): JSX.Element {
  return (
    <div title={hint}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function seenMarkers(places: Uint8Array): number {
  return floats(places).filter((value, at) => at % 3 === 0 && Number.isFinite(value)).length;
}
