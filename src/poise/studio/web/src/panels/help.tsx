/** One page: what to do, and every key. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { SHORTCUTS } from "../shortcuts";
import { VIEWS } from "../stage/views";
import * as state from "../state";
import { startTour } from "./hint";
import { Button } from "./ui";

const GROUPS = ["Pose", "Time", "View", "Page"] as const;

export function Help(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (state.showHelp.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [state.showHelp.value]);
  return (
    <dialog ref={dialog} class="help" aria-label="Help" onClose={() => (state.showHelp.value = false)}>
      <h1>A few handles in, a natural body out</h1>
      <p>
        Click a joint to hold it; drag it, and the rest of the body follows the way the model has seen people move. Hold
        two or three joints where they must be and leave the others to the model. A red line shows what the body cannot
        reach.
      </p>
      <p>
        Drag empty ground to turn the view, with the right button to shift it, wheel to come closer; by touch, two
        fingers turn and pinch it. Files dropped anywhere are opened: motions, takes of markers, pictures, scenes.
      </p>
      <div class="columns">
        {GROUPS.map((group) => (
          <section key={group}>
            <h2>{group}</h2>
            <dl>
              {group === "Pose" && <Row keys="Arrows" words="Move the handle by 1 cm, with Shift by 10" />}
              {group === "View" && <Row keys="1" to={String(VIEWS.length)} words={`${VIEWS.join(", ")}`} />}
              {SHORTCUTS.filter((shortcut) => shortcut.group === group && shortcut.words).map(({ keys, words }) => (
                <Row key={keys} keys={keys} words={words} />
              ))}
            </dl>
          </section>
        ))}
      </div>
      <div class="row">
        <Button label="Close" kind="primary" onPress={() => (state.showHelp.value = false)} />
        <Button
          label="Take the tour"
          onPress={() => {
            state.showHelp.value = false;
            startTour();
          }}
        />
      </div>
    </dialog>
  );
}

function Row({ keys, to, words }: { keys: string; to?: string; words: string }): JSX.Element {
  return (
    <div>
      <dt>
        {keys.split("+").map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
        {to && (
          <>
            to <kbd>{to}</kbd>
          </>
        )}
      </dt>
      <dd>{words}</dd>
    </div>
  );
}
