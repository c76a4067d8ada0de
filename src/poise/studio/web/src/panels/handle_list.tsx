/** All handles as a list, and everything about the selected one: the stage for those who use keys or numbers. */
import type { JSX } from "preact";
import { Pin, PinOff, Trash2 } from "lucide-preact";
import type { Quat, Vec3 } from "../arrays";
import { jointRotation } from "../arrays";
import type { SceneHandle } from "../messages";
import { centimetres } from "../stage/handle_marks";
import { type HandlePlace, handlePlaces } from "../stage/picking";
import * as state from "../state";
import { changeHandle, handleOn, newest, removeHandle } from "../studio";
import { degreesFromQuaternion, quaternionFromDegrees } from "../turns";
import { IconButton, NumberField, Section, Segmented, Slider, Toggle } from "./ui";

export function HandleList(): JSX.Element {
  const places = new Map(handlePlaces().map((place) => [place.id, place]));
  return (
    <Section title="Handles" aside={<AddHandle />}>
      {!state.handles.value.length && <p class="empty">Click a joint on the body to hold it, or choose one here.</p>}
      <ul class="handles">
        {state.handles.value.map((handle) => (
          <HandleRow key={handle.id} handle={handle} place={places.get(handle.id)} />
        ))}
      </ul>
    </Section>
  );
}

function AddHandle(): JSX.Element {
  const made = new Set(state.handles.value.map((handle) => handle.id));
  const skin = (state.body.value?.surfaces ?? []).filter((name) => !made.has(name));
  const taken = new Set(state.handles.value.filter(({ id }) => !state.isSkin(id)).map(({ joint }) => joint));
  const free = (state.body.value?.joints ?? []).filter((joint) => !taken.has(joint.name));
  return (
    <select
      class="add"
      aria-label="Add a handle"
      value=""
      onChange={(event) => {
        state.select(handleOn(event.currentTarget.value).id);
        event.currentTarget.value = "";
      }}
    >
      <option value="">Add</option>
      {free.map((joint) => (
        <option key={joint.name} value={joint.name}>
          {state.jointLabel(joint)}
        </option>
      ))}
      {skin.map((name) => (
        <option key={name} value={name}>
          {state.handleLabel({ id: name, joint: name })}
        </option>
      ))}
    </select>
  );
}

function HandleRow({ handle, place }: { handle: SceneHandle; place: HandlePlace | undefined }): JSX.Element {
  const chosen = state.selected.value === handle.id;
  const also = state.alsoSelected.value.has(handle.id);
  const name = state.handleLabel(handle);
  const missed = handle.pinned && place && place.missed > 0.01;
  return (
    <li class={chosen || also ? "chosen" : ""}>
      <div class="handle-row">
        <button
          type="button"
          class="name"
          aria-expanded={chosen}
          onClick={(event) => state.select(chosen && !event.shiftKey ? null : handle.id, event.shiftKey)}
        >
          <span
            class={`bead ${handle.pinned ? (handle.hard ? "hard" : "soft") : "free"} ${missed ? "missed" : ""}`}
            aria-hidden="true"
          />
          {name}
        </button>
        {missed && <span class="missed-by">{centimetres(place.missed)} off</span>}
        <IconButton
          label={handle.pinned ? `Unpin ${name}` : `Pin ${name}`}
          hint={handle.pinned ? "Pinned: holds its place (P)" : "Free: follows the body (P)"}
          icon={handle.pinned ? Pin : PinOff}
          pressed={handle.pinned}
          onPress={() => changeHandle(handle.id, { pinned: !handle.pinned })}
        />
        <IconButton
          label={`Remove ${name}`}
          hint="Remove (Delete)"
          icon={Trash2}
          onPress={() => removeHandle(handle.id)}
        />
      </div>
      {chosen && place && <Inspector handle={handle} place={place} />}
    </li>
  );
}

function Inspector({ handle, place }: { handle: SceneHandle; place: HandlePlace }): JSX.Element {
  const change = (part: Partial<SceneHandle>): void => changeHandle(handle.id, part);
  const said = newest(handle);
  const wanted = (said !== handle && said.position) || place.wanted;
  const at = (axis: number, value: number): Vec3 =>
    wanted.map((old, number) => (number === axis ? value / 100 : old)) as Vec3;
  return (
    <div class="inspector">
      <div class="fields" role="group" aria-label="Position in centimetres">
        {(["X", "Y", "Z"] as const).map((axis, number) => (
          <NumberField
            key={axis}
            prefix={axis}
            label={`${axis} in centimetres`}
            value={wanted[number]! * 100}
            onEnter={(value) => change({ position: at(number, value), pinned: true })}
          />
        ))}
        <span class="unit">cm</span>
      </div>
      <Turn handle={said} onTurn={(rotation) => change({ rotation })} />
      <div class="row between">
        <Segmented
          label="Hard or soft"
          value={handle.hard ? "hard" : "soft"}
          choices={[
            { value: "hard", label: "Hard", hint: "Met exactly if the body can reach it" },
            { value: "soft", label: "Soft", hint: "May yield to a more likely pose" },
          ]}
          onChoose={(value) => change({ hard: value === "hard" })}
        />
      </div>
      {state.props.value.length > 0 && (
        <select
          aria-label="Glued to"
          value={handle.glued ?? ""}
          onChange={(event) => change({ glued: event.currentTarget.value || null, pinned: true })}
        >
          <option value="">Not glued to a prop</option>
          {state.props.value.map(({ id }) => (
            <option key={id} value={id}>
              Glued to {id}
            </option>
          ))}
        </select>
      )}
      {!handle.hard && (
        <Slider
          label="Tolerance"
          low={0.005}
          high={0.3}
          step={0.005}
          value={handle.tolerance}
          words={centimetres(handle.tolerance)}
          onMove={(tolerance) => change({ tolerance })}
        />
      )}
    </div>
  );
}

function Turn({ handle, onTurn }: { handle: SceneHandle; onTurn: (rotation: Quat | null) => void }): JSX.Element {
  const joints = state.pose.value?.joints;
  const now = (): Quat => (joints ? jointRotation(joints, state.jointNumber(handle.joint)) : [1, 0, 0, 0]);
  const degrees = handle.rotation && degreesFromQuaternion(handle.rotation);
  return (
    <>
      <Toggle label="Hold its rotation" on={handle.rotation !== null} onChange={(on) => onTurn(on ? now() : null)} />
      {degrees && (
        <div class="fields" role="group" aria-label="Rotation in degrees">
          {(["X", "Y", "Z"] as const).map((axis, number) => (
            <NumberField
              key={axis}
              prefix={axis}
              label={`Turn about ${axis} in degrees`}
              digits={0}
              low={-360}
              high={360}
              value={degrees[number]!}
              onEnter={(value) =>
                onTurn(quaternionFromDegrees(degrees.map((old, k) => (k === number ? value : old)) as Vec3))
              }
            />
          ))}
          <span class="unit">°</span>
        </div>
      )}
    </>
  );
}
