/** How well it went: in words, with the likelihood of the pose and what is left of the handles. */
import type { JSX } from "preact";
import type { HandleResidual } from "../messages";
import { centimetres } from "../stage/handle_marks";
import * as state from "../state";

export function Readout(): JSX.Element | null {
  const pose = state.pose.value;
  if (!pose || state.playing.value) return null;
  if (!pose.residuals.length && state.handles.value.length) return null;
  const missed = pose.residuals.filter(isMissed);
  const worst = Math.max(
    0,
    ...pose.residuals.filter(({ unit, handle, hard }) => unit === "m" && (handle || hard)).map(({ value }) => value),
  );
  return (
    <div class="readout float" role="status" aria-live="polite">
      <span class={`lamp ${missed.length ? "missed" : "met"}`} title={pose.words}>
        {verdict(pose.residuals)}
      </span>
      {worst > 0.0005 && (
        <span title="The largest distance of a handle from its target">off by {centimetres(worst)}</span>
      )}
      {pose.percentile !== null && <Likelihood share={pose.percentile} log={pose.logLikelihood} beyond={pose.beyond} />}
      {pose.microseconds > 0 && (
        <span class="quiet" title="The time of the solver">
          {(pose.microseconds / 1000).toFixed(1)} ms
        </span>
      )}
    </div>
  );
}

/** What keeps a body softly as it was recorded may give way. */
function isMissed({ met, handle, hard }: HandleResidual): boolean {
  return !met && (handle !== null || hard);
}

function verdict(residuals: readonly HandleResidual[]): string {
  const missed = residuals.filter(isMissed);
  const handles = new Set(missed.flatMap(({ handle }) => handle ?? []));
  if (handles.size) return handles.size === 1 ? "1 handle out of reach" : `${handles.size} handles out of reach`;
  if (missed.length) return "The feet cannot stay";
  return residuals.some((residual) => residual.handle) ? "All handles met" : "No handles yet";
}

/** Words for the share of recorded poses that are less likely; the last is for those beyond all of them. */
const LIKELY: readonly { readonly least: number; readonly word: string }[] = [
  { least: 10, word: "usual" },
  { least: 1, word: "rare" },
  { least: 0, word: "hardly ever seen" },
];

/** A pose that people cannot take is never usual, however likely: the part that is beyond them is named. */
function Likelihood(props: { share: number; log: number | null; beyond: string }): JSX.Element {
  const { share, log, beyond } = props;
  const percent = Math.round(share);
  const word = beyond || (LIKELY.find(({ least }) => share >= least)?.word ?? "hardly ever seen");
  const title = `Likelier than ${percent < 1 ? "under 1" : percent} % of the recorded poses${log === null ? "" : `; log-likelihood ${log.toFixed(1)}`}`;
  return (
    <span class="likelihood" title={title}>
      <span
        class="meter"
        role="meter"
        aria-label="Likelihood of the pose"
        aria-valuenow={percent}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuetext={word}
      >
        <span style={{ width: `${percent}%` }} />
      </span>
      {word}
    </span>
  );
}
