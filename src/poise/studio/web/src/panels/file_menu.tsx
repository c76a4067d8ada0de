/** Opening, saving and sending out. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Download, FileBox, FolderOpen, Radio, Save } from "lucide-preact";
import { openFile, savePicture } from "../files";
import type { Export } from "../messages";
import * as state from "../state";
import { say } from "../studio";
import { Button, PickFiles, Toggle, closeOutside } from "./ui";

const OTHERS = ".png,.jpg,.jpeg,.webp,.scene,.poise,.poses,.toml,.mp4,.mov,.avi,.mkv";
const STREAM_TO = "127.0.0.1:39539"; // where VMC receivers listen

interface Choice {
  readonly format: Export["format"];
  readonly label: string;
  readonly whole: boolean;
}

const POSE_FORMATS: readonly Choice[] = [
  { format: "bvh", label: "BVH", whole: false },
  { format: "glb", label: "GLB", whole: false },
  { format: "usd", label: "USD", whole: false },
  { format: "png", label: "PNG", whole: false },
];

const MOTION_FORMATS: readonly Choice[] = [
  { format: "bvh", label: "BVH", whole: true },
  { format: "glb", label: "GLB", whole: true },
  { format: "usd", label: "USD", whole: true },
  { format: "gif", label: "GIF", whole: true },
  { format: "mp4", label: "MP4", whole: true },
];

export function FileMenu(): JSX.Element {
  const [open, setOpen] = useState(false);
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => (open ? closeOutside(menu.current!, () => setOpen(false)) : undefined), [open]);
  return (
    <div class="menu" ref={menu}>
      <Button label="File" icon={FileBox} pressed={open} onPress={() => setOpen(!open)} hint="Open, save and export" />
      {open && (
        <div class="menu-body" role="dialog" aria-label="File">
          <div class="row">
            <PickFiles
              label="Open"
              icon={FolderOpen}
              accept={[...state.motionFiles.value, ...state.takeFiles.value, OTHERS].join(",")}
              onFiles={(files) => files.forEach((file) => void openFile(file))}
            />
            <Button label="Save scene" icon={Save} onPress={() => say({ type: "export", format: "scene" })} />
          </div>
          <ExportRow title="Export the pose" choices={POSE_FORMATS} disabled={false} />
          <ExportRow title="Export the motion" choices={MOTION_FORMATS} disabled={!state.motion.value} />
          <StreamOut />
        </div>
      )}
    </div>
  );
}

function ExportRow({
  title,
  choices,
  disabled,
}: {
  title: string;
  choices: readonly Choice[];
  disabled: boolean;
}): JSX.Element {
  return (
    <div class="menu-group" role="group" aria-label={title}>
      <h3>
        <Download size={13} aria-hidden="true" /> {title}
      </h3>
      <div class="row">
        {choices.map(({ format, label, whole }) => (
          <Button
            key={label}
            label={label}
            disabled={disabled}
            hint={disabled ? "Key a motion first" : `${title} as ${label}`}
            onPress={() => (format === "png" ? savePicture() : say({ type: "export", format, whole }))}
          />
        ))}
      </div>
    </div>
  );
}

function StreamOut(): JSX.Element {
  const [address, setAddress] = useState(STREAM_TO);
  const streaming = state.scene.value?.streaming ?? null;
  return (
    <div class="menu-group">
      <h3>
        <Radio size={13} aria-hidden="true" /> Live out (VMC)
      </h3>
      <div class="row">
        <Toggle
          label={streaming ? "Sending" : "Send"}
          hint="Send every pose to Blender, Unreal or VTuber tools"
          on={streaming !== null}
          onChange={(on) => say({ type: "streamOut", to: on ? address : null })}
        />
        <input
          class="text"
          aria-label="Send to host and port"
          value={streaming ?? address}
          disabled={streaming !== null}
          onInput={(event) => setAddress(event.currentTarget.value)}
        />
      </div>
    </div>
  );
}
