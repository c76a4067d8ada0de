/** Quiet offers beside the stage: a model that fits better, other kinds of poses, the handle that would settle most. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { X } from "lucide-preact";
import { kinds, looksLike, nextHandle, pointedKind } from "../advice";
import * as state from "../state";
import { chooseModel, handleOn, keyEase, say } from "../studio";
import * as view from "../view";
import { touring } from "./hint";

const WORTH = 0.2; // of what is open: a handle that settles less is not offered

/** What was put away, until the page is opened again. */
const dismissed = signal<ReadonlySet<string>>(new Set());

export function Advice(): JSX.Element | null {
  if (!view.hints.value || touring.value || state.workspace.value !== "pose") return null;
  const model = state.models.value.find(({ id }) => id === looksLike.value);
  const next = nextHandle.value;
  return (
    <>
      {model && (
        <Offer name={model.id} does="Use it" onTake={() => chooseModel(model.id)}>
          This looks like <em>{model.name}</em>.
        </Offer>
      )}
      {next && next.share >= WORTH && (
        <Offer name="handle" does="Pin it" onTake={() => state.select(handleOn(next.joint).id)}>
          <span>{next.words}</span>
        </Offer>
      )}
      {kinds.value.length > 0 && <Kinds shares={kinds.value} />}
    </>
  );
}

/** Other kinds of poses, the likeliest first: pointed at, one is shown; pressed, it is taken. */
function Kinds({ shares }: { readonly shares: readonly number[] }): JSX.Element {
  return (
    <div class="hint advice float" role="group" aria-label="Other kinds of poses">
      <span>Also possible:</span>
      {shares.map((share, number) => (
        <button
          key={number}
          type="button"
          title="Take this kind of pose"
          onPointerEnter={() => (pointedKind.value = number)}
          onPointerLeave={() => (pointedKind.value = null)}
          onClick={() => say({ type: "takeKind", number, ease: keyEase() })}
        >
          {Math.round(100 * share)} %
        </button>
      ))}
    </div>
  );
}

interface OfferProps {
  readonly name: string;
  readonly does: string;
  readonly onTake: () => void;
  readonly children: JSX.Element | (JSX.Element | string | number)[];
}

function Offer({ name, does, onTake, children }: OfferProps): JSX.Element | null {
  if (dismissed.value.has(name)) return null;
  return (
    <div class="hint advice float" role="note" aria-label="Suggestion">
      <span>{children}</span>
      <button type="button" onClick={onTake}>
        {does}
      </button>
      <button
        type="button"
        aria-label="Dismiss the suggestion"
        title="Not now; View options hides all suggestions"
        onClick={() => (dismissed.value = new Set([...dismissed.value, name]))}
      >
        <X size={14} aria-hidden="true" />
      </button>
    </div>
  );
}
