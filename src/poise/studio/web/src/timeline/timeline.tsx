/** The timeline: keys per handle, pins as ranges, the lane of styles; scrub on the ruler, drag keys along their lane. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { Diamond, Layers, Pause, Pin, Play, SkipBack, Sparkles } from "lucide-preact";
import { clock, frame, scrub, togglePlay } from "../shown";
import * as state from "../state";
import { putKey, say, setTimeline } from "../studio";
import { palette } from "../theme";
import { Button, IconButton, NumberField, Toggle, useCanvas } from "../panels/ui";
import { keySelected, pinSelected, styleHere } from "./keys";
import { LANE, type Lane, RULER, Scale, lanesNow } from "./lanes";
import { paintTimeline } from "./paint";

const PIN_FRAMES = 15; // how long a new pin lasts at first
const REACH = 8; // pixels

type Hold =
  | { readonly what: "head" }
  | { readonly what: "key"; readonly handle: string; readonly from: number }
  | {
      readonly what: "pin";
      readonly handle: string;
      readonly first: number;
      readonly last: number;
      readonly end: "first" | "last";
    };

const hold = signal<Hold | null>(null);

export function Timeline(): JSX.Element {
  const lanes = lanesNow();
  return (
    <section class="timeline" aria-label="Timeline">
      <Transport />
      <div class="lanes">
        <ul class="lane-names" style={{ paddingTop: `${RULER}px` }}>
          {lanes.map((lane) => (
            <li key={lane.name} class={lane.chosen ? "chosen" : ""} style={{ height: `${LANE}px` }}>
              <button type="button" disabled={lane.name === "style"} onClick={() => choose(lane.name)}>
                {lane.label}
              </button>
            </li>
          ))}
        </ul>
        <Lanes lanes={lanes} />
      </div>
    </section>
  );
}

function choose(name: string): void {
  if (state.workspace.value === "capture") state.selectedMarker.value = name;
  else state.selected.value = name;
}

function Transport(): JSX.Element {
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
      {!capture && (
        <>
          <span class="rule" />
          <Button label="Key" icon={Diamond} hint="Key the selected handle here (K)" onPress={keySelected} />
          <Toggle
            label="Auto"
            hint="Key what is dragged, at once"
            on={state.autoKey.value}
            onChange={(on) => (state.autoKey.value = on)}
          />
          <span class="rule" />
          {timeline?.clip ? <Ease /> : <PinAndStyle />}
          <Button
            label="Onion"
            icon={Layers}
            hint="Onion skin (O)"
            pressed={state.onion.value}
            onPress={() => (state.onion.value = !state.onion.value)}
          />
          <span class="space" />
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
          {!timeline?.clip && (
            <Button
              label="Solve all"
              kind="primary"
              hint="Solve the whole timeline with the fine model"
              onPress={() => say({ type: "solveTimeline" })}
            />
          )}
        </>
      )}
    </div>
  );
}

/** Over a recording: how far a key reaches. */
function Ease(): JSX.Element {
  return (
    <NumberField
      label="Frames over which a key fades to either side"
      prefix="ease"
      digits={0}
      low={0}
      high={1000}
      value={state.ease.value}
      onEnter={(frames) => (state.ease.value = Math.round(frames))}
    />
  );
}

function PinAndStyle(): JSX.Element {
  return (
    <>
      <Button
        label="Pin"
        icon={Pin}
        hint="Hold the selected handle from here on"
        onPress={() => pinSelected(PIN_FRAMES)}
      />
      <Button label="Style" icon={Sparkles} hint="From here on, the styles as they are now" onPress={styleHere} />
    </>
  );
}

function Lanes({ lanes }: { lanes: readonly Lane[] }): JSX.Element {
  const canvas = useCanvas((pen, width, height) =>
    paintTimeline(pen, lanes, new Scale(clock.value.frames, width), height),
  );
  void [frame.value, palette.value, state.motion.value, state.selectedKey.value];
  return (
    <canvas
      ref={canvas}
      class="lane-canvas"
      style={{ height: `${RULER + Math.max(lanes.length, 3) * LANE + 4}px` }}
      tabIndex={0}
      role="slider"
      aria-label="Frame"
      aria-valuemin={0}
      aria-valuemax={clock.value.frames - 1}
      aria-valuenow={frame.value}
      onPointerDown={(event) => press(event, lanes)}
      onPointerMove={(event) => move(event)}
      onPointerUp={(event) => release(event)}
      onDblClick={(event) => keyAt(event, lanes)}
      onKeyDown={(event) => arrow(event)}
    />
  );
}

function under(event: MouseEvent, lanes: readonly Lane[]): { lane: Lane | undefined; scale: Scale; x: number } {
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  const number = Math.floor((event.clientY - box.top - RULER) / LANE);
  return {
    lane: number >= 0 ? lanes[number] : undefined,
    scale: new Scale(clock.value.frames, box.width),
    x: event.clientX - box.left,
  };
}

function press(event: PointerEvent, lanes: readonly Lane[]): void {
  (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
  const { lane, scale, x } = under(event, lanes);
  if (lane && lane.name !== "style") choose(lane.name);
  const key = lane?.keys.find((at) => Math.abs(scale.x(at) - x) < REACH);
  const pin = lane?.bars.find(
    (bar) => bar.kind === "pin" && Math.min(Math.abs(scale.x(bar.first) - x), Math.abs(scale.x(bar.last) - x)) < REACH,
  );
  state.selectedKey.value = lane && key !== undefined ? { handle: lane.name, frame: key } : null;
  if (lane && key !== undefined) hold.value = { what: "key", handle: lane.name, from: key };
  else if (lane && pin) {
    const end = Math.abs(scale.x(pin.first) - x) < Math.abs(scale.x(pin.last) - x) ? "first" : "last";
    hold.value = { what: "pin", handle: lane.name, first: pin.first, last: pin.last, end };
  } else hold.value = { what: "head" };
  scrub(key ?? scale.frame(x), false);
}

function move(event: PointerEvent): void {
  if (!hold.value) return;
  const { scale, x } = under(event, []);
  scrub(scale.frame(x), false);
}

function release(event: PointerEvent): void {
  const held = hold.value;
  hold.value = null;
  if (!held) return;
  const { scale, x } = under(event, []);
  const to = scale.frame(x);
  if (held.what === "key" && to !== held.from) moveKey(held.handle, held.from, to);
  if (held.what === "pin") movePin(held, to);
  scrub(to, true);
}

function moveKey(handle: string, from: number, to: number): void {
  const key = state.scene.value?.timeline.keys.find(
    (candidate) => candidate.handle === handle && candidate.frame === from,
  );
  if (!key) return;
  say({ type: "removeKey", handle, frame: from });
  putKey({ ...key, frame: to });
  state.selectedKey.value = { handle, frame: to };
}

function movePin(pin: Extract<Hold, { what: "pin" }>, to: number): void {
  const [first, last] = pin.end === "first" ? [Math.min(to, pin.last), pin.last] : [pin.first, Math.max(to, pin.first)];
  if (first !== pin.first) say({ type: "removePin", handle: pin.handle, first: pin.first });
  say({ type: "putPin", pin: { handle: pin.handle, first, last } });
}

function keyAt(event: MouseEvent, lanes: readonly Lane[]): void {
  const { lane, scale, x } = under(event, lanes);
  if (!lane || lane.name === "style" || state.workspace.value === "capture") return;
  putKey({ handle: lane.name, frame: scale.frame(x), position: null, rotation: null, ease: state.ease.value });
}

function arrow(event: KeyboardEvent): void {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  event.stopPropagation();
  scrub(frame.value + step * (event.shiftKey ? 10 : 1), true);
}
