/** What the page has to say: how far long tasks are, what went wrong, and a hint for those who are new. */
import type { JSX } from "preact";
import { X } from "lucide-preact";
import { lineState } from "../socket";
import * as state from "../state";
import { cancel, openKept } from "../studio";
import { Advice } from "./advice";
import { Hint } from "./hint";
import { Button } from "./ui";

const OFFERED = 3;

export function Words(): JSX.Element {
  return (
    <div class="words" aria-live="polite">
      {[...state.progress.value.values()].map((step) => (
        <div class="notice progress" key={step.task} role="status">
          <span>{step.words}</span>
          <progress max={1} value={step.share} aria-label={step.words} />
          {lineState.value === "open" && (
            <button type="button" aria-label={`Stop ${step.words}`} title="Stop" onClick={() => cancel(step.task)}>
              <X size={14} aria-hidden="true" />
            </button>
          )}
        </div>
      ))}
      <KeptScenes />
      {state.notices.value.map((notice) => (
        <div class={`notice ${notice.kind}`} key={notice.id} role={notice.kind === "error" ? "alert" : "status"}>
          <span>{notice.words}</span>
          {notice.offer && (
            <Button
              label={notice.offer.label}
              onPress={() => {
                notice.offer?.take();
                state.dismiss(notice.id);
              }}
            />
          )}
          <button type="button" aria-label="Dismiss" onClick={() => state.dismiss(notice.id)}>
            <X size={14} aria-hidden="true" />
          </button>
        </div>
      ))}
      <Advice />
      <Hint />
    </div>
  );
}

/** What this browser worked on before, offered until it is taken up or put away. */
function KeptScenes(): JSX.Element | null {
  if (!state.kept.value.length || state.scene.value?.undo) return null; // other work has begun
  return (
    <div class="notice kept" role="region" aria-label="Earlier work">
      <span>Continue earlier work?</span>
      <button type="button" aria-label="Dismiss" onClick={() => (state.kept.value = [])}>
        <X size={14} aria-hidden="true" />
      </button>
      <ul>
        {state.kept.value.slice(0, OFFERED).map(({ token, age, words }) => (
          <li key={token}>
            <Button label={`${words}, ${ago(age)}`} onPress={() => openKept(token)} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function ago(seconds: number): string {
  if (seconds < 90) return "just now";
  if (seconds < 5400) return `${Math.round(seconds / 60)} minutes ago`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} hours ago` : `${Math.round(seconds / 86400)} days ago`;
}
