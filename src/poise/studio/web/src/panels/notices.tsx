/** What went wrong and how far long tasks are, in words. */
import type { JSX } from "preact";
import { X } from "lucide-preact";
import * as state from "../state";

export function Notices(): JSX.Element {
  return (
    <div class="notices" aria-live="assertive">
      {[...state.progress.value.values()].map((step) => (
        <div class="notice" key={step.task} role="status">
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
    </div>
  );
}
