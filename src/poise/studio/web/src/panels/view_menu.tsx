/** How to look: perspective, navigation, snapping, trails and ghosts. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { SlidersHorizontal } from "lucide-preact";
import { NAVIGATIONS } from "../stage/views";
import * as state from "../state";
import * as view from "../view";
import { IconButton, NumberField, Segmented, Toggle, closeOutside } from "./ui";

const LABELS = { poise: "Poise", blender: "Blender", maya: "Maya" } as const;
const HINTS = {
  poise: "Drag empty ground to turn, right button to pan, wheel to zoom; Alt turns over the body",
  blender: "Middle button turns, with Shift it pans, wheel zooms",
  maya: "Alt with the left button turns, with the middle one pans, with the right one zooms",
} as const;

export function ViewMenu(): JSX.Element {
  const [open, setOpen] = useState(false);
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => (open ? closeOutside(menu.current!, () => setOpen(false)) : undefined), [open]);
  return (
    <div class="menu view-menu" ref={menu}>
      <IconButton
        label="View options"
        icon={SlidersHorizontal}
        pressed={open}
        onPress={() => setOpen(!open)}
        hint="Perspective, camera, snapping, trails and ghosts"
      />
      {open && (
        <div class="menu-body" role="dialog" aria-label="View options">
          <Toggle label="Orthographic" hint="No perspective (0)" on={view.flat.value} onChange={set(view.flat)} />
          <Toggle
            label="Snap to props, 5 cm and 15°"
            hint="Ctrl while dragging does the opposite (N)"
            on={view.snap.value}
            onChange={set(view.snap)}
          />
          <Toggle
            label="Motion trails"
            hint="The paths of the selected joints, or of hands and feet (L)"
            on={view.trails.value}
            onChange={set(view.trails)}
          />
          <Toggle
            label="What else is possible"
            hint="Other poses that meet the pinned handles, as ghosts (U)"
            on={view.soft.value}
            onChange={set(view.soft)}
          />
          <Toggle
            label="Suggestions"
            hint="Which handle to pin next, and which model fits"
            on={view.hints.value}
            onChange={set(view.hints)}
          />
          <Ghosts />
          <div class="menu-group">
            <h3>Camera as in</h3>
            <Segmented
              label="Camera as in"
              value={view.navigation.value}
              choices={NAVIGATIONS.map((value) => ({ value, label: LABELS[value], hint: HINTS[value] }))}
              onChoose={(chosen) => (view.navigation.value = chosen)}
            />
          </div>
        </div>
      )}
    </div>
  );
}

const set =
  (to: { value: boolean }) =>
  (on: boolean): void =>
    void (to.value = on);

function Ghosts(): JSX.Element {
  return (
    <div class="menu-group">
      <Toggle label="Ghosts of other frames" hint="Onion skin (O)" on={state.onion.value} onChange={set(state.onion)} />
      <div class="row">
        <NumberField
          label="Ghosts to either side"
          prefix="±"
          digits={0}
          low={1}
          high={12}
          value={view.ghostCount.value}
          onEnter={(count) => (view.ghostCount.value = Math.round(count))}
        />
        <NumberField
          label="Frames between ghosts"
          prefix="every"
          digits={0}
          low={1}
          high={120}
          value={view.ghostStep.value}
          onEnter={(frames) => (view.ghostStep.value = Math.round(frames))}
        />
      </div>
      <Toggle
        label="Over the range"
        hint="Over the whole range of the timeline"
        on={view.ghostsOverRange.value}
        onChange={set(view.ghostsOverRange)}
      />
    </div>
  );
}
