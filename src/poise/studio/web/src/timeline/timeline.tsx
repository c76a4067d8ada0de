/** The timeline: keys per handle and of the whole body, pins, styles, contacts; or the selected handle's curves. */
import { useEffect } from "preact/hooks";
import type { JSX } from "preact";
import { clock, frame } from "../shown";
import * as state from "../state";
import { say } from "../studio";
import { palette } from "../theme";
import { useCanvas } from "../panels/ui";
import { Graph } from "./graph";
import { LANE, type Lane, RULER, Scale, lanesNow } from "./lanes";
import { paintTimeline } from "./paint";
import { arrow, chooseLane, keyBox, keysMoved, move, press, release, twice, wheel } from "./pointing";
import { Transport } from "./transport";

const CALM = 400; // milliseconds without a change after which contacts are looked for

export function Timeline(): JSX.Element {
  useEffect(askForContacts, [state.motion.value, state.workspace.value]);
  const lanes = lanesNow();
  return (
    <section class="timeline" aria-label="Timeline">
      <Transport />
      {state.showGraph.value && state.workspace.value === "animate" ? <Graph /> : <Lanes lanes={lanes} />}
    </section>
  );
}

function askForContacts(): (() => void) | void {
  if (!state.motion.value || state.workspace.value !== "animate") return undefined;
  const later = setTimeout(() => say({ type: "askContacts" }), CALM);
  return () => clearTimeout(later);
}

function Lanes({ lanes }: { lanes: readonly Lane[] }): JSX.Element {
  return (
    <div class="lanes">
      <ul class="lane-names" style={{ paddingTop: `${RULER}px` }}>
        {lanes.map((lane) => (
          <li key={lane.name} class={lane.chosen ? "chosen" : ""} style={{ height: `${LANE}px` }}>
            <button type="button" disabled={!isChoosable(lane)} onClick={() => chooseLane(lane)}>
              {lane.label}
            </button>
          </li>
        ))}
      </ul>
      <LaneCanvas lanes={lanes} />
    </div>
  );
}

function isChoosable(lane: Lane): boolean {
  return state.workspace.value === "capture" || typeof lane.handle === "string";
}

function LaneCanvas({ lanes }: { lanes: readonly Lane[] }): JSX.Element {
  const canvas = useCanvas((pen, width, height) =>
    paintTimeline(pen, lanes, new Scale(clock.value.frames, width), height),
  );
  useEffect(() => {
    canvas.current?.addEventListener("wheel", wheel, { passive: false });
    return () => canvas.current?.removeEventListener("wheel", wheel);
  }, []);
  void [frame.value, palette.value, state.motion.value, state.selectedKeys.value, keysMoved.value, state.range.value];
  void [state.selectedContact.value, state.contacts.value, keyBox.value];
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
      onPointerMove={move}
      onPointerUp={(event) => release(event, lanes)}
      onPointerCancel={(event) => release(event, lanes)}
      onDblClick={(event) => twice(event, lanes)}
      onKeyDown={arrow}
    />
  );
}
