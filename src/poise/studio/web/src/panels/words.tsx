/** What the page has to say: how far long tasks are, what went wrong, and a hint for those who are new. */
import type { JSX } from "preact";
import { X } from "lucide-preact";
import * as state from "../state";
import { Hint } from "./hint";

export function Words(): JSX.Element {
  return (
    <div class="words" aria-live="polite">
      {[...state.progress.value.values()].map((step) => (
        <div class="notice progress" key={step.task} role="status">
          <span>{step.words}</span>
          <progress max={1} value={step.share} aria-label={step.words} />
        </div>
      ))}
      {state.notices.value.map((notice) => (
        <div class={`notice ${notice.kind}`} key={notice.id} role={notice.kind === "error" ? "alert" : "status"}>
          <span>{notice.words}</span>
          <button type="button" aria-label="Dismiss" onClick={() => state.dismiss(notice.id)}>
            <X size={14} aria-hidden="true" />
          </button>
        </div>
      ))}
      <Hint />
    </div>
  );
}
