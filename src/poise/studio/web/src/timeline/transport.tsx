/** Above the lanes: playback, keys, what a range or keys that are selected can become, and the timeline's length. */
import type { JSX } from "preact";
import {
  ChartSpline,
  Diamond,
  FlipHorizontal2,
  Footprints,
  Layers,
  Lock,
  Maximize2,
  Pause,
  Pin,
  Play,
  Repeat,
  SkipBack,
  Sparkles,
  Undo,
  X,
} from "lucide-preact";
import { type EditRange, type Key, type KeyPlace, POSES } from "../messages";
import { clock, frame, scrub, togglePlay } from "../shown";
import * as state from "../state";
import { say, setTimeline } from "../studio";
import { Button, IconButton, NumberField, Toggle } from "../panels/ui";
import { keyPose, pinSelected, styleHere } from "./keys";
import { TOUCHING, isZoomed, showAllFrames, showFrames } from "./lanes";
import { lock } from "./pointing";

const PIN_FRAMES = 15; // how long a new pin lasts at first
const TANGENTS = { chosen: "smooth", flat: "flat" } as const;
const EASINGS = { none: "no easing", in: "ease in", out: "ease out", "in-out": "ease in and out" } as const;

export function Transport(): JSX.Element {
  const capture = state.workspace.value === "capture";
  const timeline = state.scene.value?.timeline;
  return (
    <div class="transport" role="toolbar" aria-label="Playback and keys">
      <IconButton label="To the first frame" icon={SkipBack} onPress={() => scrub(0, true)} />
      <IconButton
        label={state.playing.value ? "Stop" : "Play"}
        hint="Play or stop (Space)"
        icon={state.playing.value ? Pause : Play}
        onPress={togglePlay}
      />
      <NumberField
        label="Frame"
        digits={0}
        low={0}
        high={clock.value.frames - 1}
        value={frame.value}
        onEnter={(value) => scrub(value, true)}
      />
      <span class="quiet time">{(frame.value / clock.value.fps).toFixed(2)} s</span>
      {isZoomed() && <IconButton label="Show all frames" icon={Maximize2} onPress={showAllFrames} />}
      {!capture && (
        <>
          <span class="rule" />
          <Button label="Key" icon={Diamond} hint="Key the pose here (S)" onPress={keyPose} />
          <Toggle
            label="Auto"
            hint="Key the pose whenever you change it"
            on={state.autoKey.value}
            onChange={(on) => (state.autoKey.value = on)}
          />
          {timeline?.clip && !state.isPosed.value && <Ease />}
          <IconButton
            label="Pin"
            hint="Hold the selected handle from this frame on"
            icon={Pin}
            onPress={() => pinSelected(PIN_FRAMES)}
          />
          {!timeline?.clip && !state.isPosed.value && (
            <IconButton
              label="Style"
              hint="Use the current styles from this frame on"
              icon={Sparkles}
              onPress={styleHere}
            />
          )}
          <span class="rule" />
          <Shown />
          <span class="space" />
          <Length />
        </>
      )}
      {!capture && <Chosen />}
    </div>
  );
}

/** What the timeline and the stage show besides; each is on or off. */
const SHOWN = [
  { label: "Onion", hint: "Onion skin (O)", icon: Layers, shown: state.onion },
  { label: "Graph", hint: "The selected handle's path as curves", icon: ChartSpline, shown: state.showGraph },
  {
    label: "Contacts",
    hint: "When feet, hands, knees and the seat touch; double-click one to lock it",
    icon: Footprints,
    shown: state.showContacts,
  },
];

function Shown(): JSX.Element {
  return (
    <>
      {SHOWN.map(({ shown, ...button }) => (
        <IconButton key={button.label} {...button} pressed={shown.value} onPress={() => (shown.value = !shown.value)} />
      ))}
    </>
  );
}

function Length(): JSX.Element {
  const timeline = state.scene.value?.timeline;
  return (
    <>
      <NumberField
        label="Length in frames"
        digits={0}
        low={2}
        high={36000}
        value={timeline?.frames ?? 1}
        unit="frames"
        onEnter={(frames) => setTimeline(timeline?.fps ?? 30, Math.round(frames))}
      />
      <NumberField
        label="Frames a second"
        digits={0}
        low={1}
        high={240}
        value={timeline?.fps ?? 30}
        unit="fps"
        onEnter={(fps) => setTimeline(fps, timeline?.frames ?? 60)}
      />
      {!timeline?.clip && !state.isPosed.value && (
        <Button
          label="Solve all"
          kind="primary"
          hint="Solve the whole timeline with the fine model"
          onPress={() => say({ type: "solveTimeline" })}
        />
      )}
    </>
  );
}

/** Over a recording: how far a key reaches. */
function Ease(): JSX.Element {
  const keys = [...state.selectedKeys.value];
  const enter = (seconds: number): void => {
    state.easeSeconds.value = seconds;
    if (keys.length) say({ type: "easeKeys", keys, ease: state.ease.value });
  };
  return (
    <NumberField
      label="Seconds over which a key fades to either side"
      prefix="ease"
      unit="s"
      digits={2}
      low={0}
      high={30}
      value={state.easeSeconds.value}
      onEnter={enter}
    />
  );
}

/** What can be done with a range or with keys that are selected: a line of its own, only where there is one. */
function Chosen(): JSX.Element | null {
  const range = state.range.value;
  const keys = state.selectedKeys.value;
  const contact = state.selectedContact.value;
  if (!range && !keys.length && !contact) return null;
  return (
    <div class="chosen-tools" role="group" aria-label="Selection on the timeline">
      {range && <RangeTools first={range[0]} last={range[1]} />}
      {keys.length > 0 && <KeyTools />}
      {contact && (
        <>
          <span class="quiet">
            {TOUCHING[contact.part]} on, frames {contact.first} to {contact.last}
          </span>
          <Button
            label="Lock contact"
            icon={Lock}
            hint="Hold the contact in place over these frames"
            onPress={() => lock(contact)}
          />
        </>
      )}
    </div>
  );
}

function RangeTools({ first, last }: { first: number; last: number }): JSX.Element {
  const edit = (what: EditRange["edit"]): void =>
    say({ type: "editRange", first, last, edit: what, ease: state.ease.value });
  const none = !state.motion.value;
  return (
    <>
      <span class="quiet">
        Frames {first} to {last}
      </span>
      <Button
        label="Mirror range"
        icon={FlipHorizontal2}
        hint="Swap left and right"
        disabled={none}
        onPress={() => edit("mirror")}
      />
      <Button
        label="Reverse range"
        icon={Undo}
        hint="Reverse the frames in time"
        disabled={none}
        onPress={() => edit("reverse")}
      />
      <Button
        label="Close cycle"
        icon={Repeat}
        hint="The last frame takes the first one's pose"
        disabled={none}
        onPress={() => edit("cycle")}
      />
      <IconButton label="Zoom to the range" icon={Maximize2} onPress={() => showFrames(first, last)} />
      <IconButton
        label="Clear the range"
        hint="No range (Escape)"
        icon={X}
        onPress={() => (state.range.value = null)}
      />
    </>
  );
}

function tangentName(key: Key | undefined): "chosen" | "flat" | "own" {
  const own = [key?.tangent, key?.spin].flatMap((velocity) => velocity ?? []);
  if (!own.length) return "chosen";
  return own.every((value) => value === 0) ? "flat" : "own";
}

function Choice<T extends string>(props: {
  label: string;
  value: T;
  choices: Readonly<Partial<Record<T, string>>>;
  onChoose: (value: T) => void;
}): JSX.Element {
  return (
    <select
      aria-label={props.label}
      title={props.label}
      value={props.value}
      onChange={(event) => props.onChoose(event.currentTarget.value as T)}
    >
      {Object.entries(props.choices).map(([value, words]) => (
        <option key={value} value={value}>
          {words as string}
        </option>
      ))}
    </select>
  );
}

const KINDS = { extreme: "extreme", breakdown: "breakdown", hold: "hold" } as const;

function KeyTools(): JSX.Element {
  const keys = [...state.selectedKeys.value];
  return (
    <>
      <span class="quiet">{keys.length === 1 ? "1 key" : `${keys.length} keys`}</span>
      {state.scene.value?.timeline.clip === POSES && keys[0]?.handle === null ? (
        <PoseTools keys={keys} />
      ) : (
        !state.scene.value?.timeline.clip && <PathTools keys={keys} />
      )}
      <Button
        label="Remove"
        hint="Remove (Delete)"
        onPress={() => {
          say({ type: "removeKeys", keys });
          state.selectedKeys.value = [];
        }}
      />
    </>
  );
}

/** What keys of the whole body can be, and how the body goes on from them. */
function PoseTools({ keys }: { keys: KeyPlace[] }): JSX.Element {
  const first = state.scene.value?.timeline.poses.find(({ frame: at }) => at === keys[0]?.frame);
  return (
    <>
      <Choice
        label="Kind of key"
        value={first?.kind ?? "extreme"}
        choices={KINDS}
        onChoose={(kind) => say({ type: "easeKeys", keys, kind })}
      />
      {first?.kind === "hold" && (
        <NumberField
          label="Frames for which the pose is held"
          prefix="hold"
          digits={0}
          low={0}
          high={36000}
          value={first.hold}
          onEnter={(hold) => say({ type: "easeKeys", keys, hold: Math.round(hold) })}
        />
      )}
      <Choice
        label="Easing to the next key"
        value={first?.easing ?? "none"}
        choices={EASINGS}
        onChoose={(easing) => say({ type: "easeKeys", keys, easing })}
      />
      <NumberField
        label="Tempo to the next key"
        prefix="tempo"
        unit="×"
        digits={2}
        low={0.25}
        high={4}
        value={first?.tempo ?? 1}
        onEnter={(tempo) => say({ type: "easeKeys", keys, tempo })}
      />
      {keys.length > 1 && (
        <NumberField
          label="Stretch the time between these keys"
          prefix="stretch"
          unit="×"
          digits={2}
          low={0.05}
          high={20}
          value={1}
          onEnter={(stretch) => say({ type: "moveKeys", keys, stretch })}
        />
      )}
      <IconButton
        label="Mirror keys"
        hint="Swap left and right in these poses"
        icon={FlipHorizontal2}
        onPress={() => say({ type: "moveKeys", keys, mirrored: true })}
      />
    </>
  );
}

/** The curve of a handle at its keys. */
function PathTools({ keys }: { keys: KeyPlace[] }): JSX.Element {
  const first = state.scene.value?.timeline.keys.find(
    ({ handle, frame: at }) => handle === keys[0]?.handle && at === keys[0]?.frame,
  );
  return (
    <>
      <Choice
        label="Easing to the next key"
        value={first?.easing ?? "none"}
        choices={EASINGS}
        onChoose={(easing) => say({ type: "easeKeys", keys, easing })}
      />
      <Choice
        label="Tangent of the curve at the key"
        value={tangentName(first)}
        choices={tangentName(first) === "own" ? { ...TANGENTS, own: "own tangent" } : TANGENTS}
        onChoose={(tangents) => say({ type: "easeKeys", keys, tangents: tangents as "chosen" | "flat" })}
      />
    </>
  );
}
