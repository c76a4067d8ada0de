/** Other poses that explain the photo as well: small figures to look at from the side and to choose from. */
import type { JSX } from "preact";
import * as state from "../state";
import { say } from "../studio";
import { Figurine } from "./figurine";
import { Section } from "./ui";

export function Alternatives(): JSX.Element | null {
  const found = state.alternatives.value;
  if (found.length < 2) return null;
  return (
    <Section title="Poses that fit" aside={<span class="quiet">{found.length}</span>}>
      <p class="empty">A photo does not show depth. From the left:</p>
      <div class="alternatives">
        {found.map((world, number) => (
          <button
            type="button"
            key={number}
            aria-label={`Take pose ${number + 1}`}
            onPointerEnter={() => (state.offered.value = world)}
            onPointerLeave={() => (state.offered.value = null)}
            onClick={() => say({ type: "chooseAlternative", number })}
          >
            <Figurine world={world} from="left" />
          </button>
        ))}
      </div>
    </Section>
  );
}
