/** The library of poses: keep, find, take whole or in part, blend, save and open as a file. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { ClipboardCopy, ClipboardPaste, Download, FolderOpen, Plus, Trash2 } from "lucide-preact";
import { floats } from "../arrays";
import { openFile } from "../files";
import { CLIPBOARD, type KeptPose } from "../messages";
import * as state from "../state";
import { applyPose, copy, say } from "../studio";
import { Figurine } from "./figurine";
import { Button, IconButton, PickFiles, Section, Slider, Toggle } from "./ui";

const sought = signal("");
const naming = signal("");
const share = signal(1);
const mirrored = signal(false);
const chosen = signal<string | null>(null);

export function Library(): JSX.Element {
  return (
    <Section title="Poses" aside={<CopyAndPaste />} closed>
      <div class="row">
        <input
          class="text"
          aria-label="Name of the pose"
          placeholder="Name of this pose"
          value={naming.value}
          onInput={(event) => (naming.value = event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && keep()}
        />
        <Button label="Keep" icon={Plus} hint="Keep the pose shown in the library" onPress={keep} />
      </div>
      <Shelf />
      <div class="row">
        <Toggle label="Mirrored" on={mirrored.value} onChange={(on) => (mirrored.value = on)} />
        <Toggle
          label="Selected joints"
          hint="Paste and take change only the selected joints (Shift+click selects more)"
          on={state.onlySelected.value}
          onChange={(on) => (state.onlySelected.value = on)}
        />
      </div>
      <div class="row">
        <PickFiles
          label="Open poses"
          icon={FolderOpen}
          accept=".poses"
          onFiles={(files) => files.forEach((file) => void openFile(file))}
        />
        <Button label="Save poses" icon={Download} onPress={() => say({ type: "exportPoses" })} />
      </div>
    </Section>
  );
}

function CopyAndPaste(): JSX.Element {
  return (
    <span class="row">
      <IconButton label="Copy pose" hint="Copy the pose (Ctrl+C)" icon={ClipboardCopy} onPress={copy} />
      <IconButton
        label="Paste pose"
        hint="Paste (Ctrl+V), mirrored (Ctrl+Shift+V)"
        icon={ClipboardPaste}
        onPress={() => applyPose(CLIPBOARD, 1, mirrored.value, true)}
      />
    </span>
  );
}

function Shelf(): JSX.Element {
  const all = state.poses.value;
  const found = (all?.poses ?? []).filter(({ name }) => name.toLowerCase().includes(sought.value.toLowerCase()));
  const pose = found.find(({ id }) => id === chosen.value);
  if (!all?.poses.length)
    return <p class="empty">Keep a pose here and take it again in any scene{others(all?.others ?? 0)}.</p>;
  return (
    <>
      <input
        class="text"
        type="search"
        aria-label="Find a pose"
        placeholder="Find"
        value={sought.value}
        onInput={(event) => (sought.value = event.currentTarget.value)}
      />
      <div class="alternatives shelf">
        {found.map((kept) => (
          <Thumbnail key={kept.id} kept={kept} />
        ))}
      </div>
      {pose && <Blend pose={pose} />}
    </>
  );
}

const others = (count: number): string => (count ? `; ${count} are of another skeleton` : "");

function Thumbnail({ kept }: { kept: KeptPose }): JSX.Element {
  const take = (): void => {
    chosen.value = kept.id;
    share.value = 1;
    applyPose(kept.id, 1, mirrored.value, true);
  };
  return (
    <button
      type="button"
      aria-label={`Take pose ${kept.name}`}
      aria-pressed={chosen.value === kept.id}
      title={kept.name}
      onClick={take}
    >
      <Figurine world={floats(kept.world)} from="front" />
      <span>{kept.name}</span>
    </button>
  );
}

/** How far to go from the pose before to the chosen one. */
function Blend({ pose }: { pose: KeptPose }): JSX.Element {
  const move = (to: number, last: boolean): void => {
    share.value = to;
    applyPose(pose.id, to, mirrored.value, last);
  };
  return (
    <div class="row" onChange={() => move(share.value, true)}>
      <Slider
        label="Amount"
        value={share.value}
        words={`${Math.round(share.value * 100)} %`}
        onMove={(to) => move(to, false)}
      />
      <IconButton
        label={`Remove pose ${pose.name}`}
        icon={Trash2}
        onPress={() => say({ type: "dropPose", pose: pose.id })}
      />
    </div>
  );
}

function keep(): void {
  say({ type: "keepPose", name: naming.value.trim() || `Pose ${(state.poses.value?.poses.length ?? 0) + 1}` });
  naming.value = "";
}
