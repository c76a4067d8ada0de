/** The bar: what kind of work, undo and redo, files, and the page itself. */
import type { JSX } from "preact";
import { CircleHelp, Moon, Redo2, Sun, Undo2 } from "lucide-preact";
import { lineState } from "../socket";
import * as state from "../state";
import { redo, undo } from "../studio";
import { theme, toggleTheme } from "../theme";
import { FileMenu } from "./file_menu";
import { IconButton } from "./ui";

const LABELS: Record<state.Workspace, string> = {
  pose: "Pose",
  animate: "Animate",
  photo: "Photo",
  capture: "Capture",
  learn: "Learn",
};

export function Bar(): JSX.Element {
  const steps = state.scene.value;
  return (
    <header class="bar">
      <div class="brand">
        <img src="./icon.svg" alt="" width="22" height="22" />
        <strong>Poise</strong>
      </div>
      <nav class="tabs" aria-label="Workspaces">
        {state.WORKSPACES.map((name) => (
          <button
            type="button"
            key={name}
            aria-current={state.workspace.value === name ? "page" : undefined}
            onClick={() => (state.workspace.value = name)}
          >
            {LABELS[name]}
          </button>
        ))}
      </nav>
      <span class="space" />
      <LineLamp />
      <IconButton label="Undo" hint="Undo (Ctrl+Z)" icon={Undo2} disabled={!steps?.undo} onPress={undo} />
      <IconButton label="Redo" hint="Redo (Ctrl+Shift+Z)" icon={Redo2} disabled={!steps?.redo} onPress={redo} />
      <FileMenu />
      <IconButton
        label={theme.value === "dark" ? "Light theme" : "Dark theme"}
        hint="Light or dark (T)"
        icon={theme.value === "dark" ? Sun : Moon}
        onPress={toggleTheme}
      />
      <IconButton
        label="Help"
        hint="Keys and help (?)"
        icon={CircleHelp}
        onPress={() => (state.showHelp.value = true)}
      />
    </header>
  );
}

function LineLamp(): JSX.Element | null {
  if (lineState.value === "open") return null;
  const words = lineState.value === "lost" ? "Connection lost, trying again" : "Connecting";
  return (
    <span class={`lamp ${lineState.value}`} role="status">
      {words}
    </span>
  );
}
