/** Constraints of any registered kind, those of plugins among them, as the tables that scripts have. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import * as state from "../state";
import { setConstraints } from "../studio";
import { Button, Section } from "./ui";

const kindOf = (table: string): string => /kind = "(.*)"/.exec(table)?.[1] ?? "";

export function Constraints(): JSX.Element {
  const known = state.scene.value?.constraints ?? "";
  const [text, setText] = useState(known);
  useEffect(() => setText(known), [known]);
  const add = (table: string): void => setText(text.trim() ? `${text.trimEnd()}\n\n${table}\n` : `${table}\n`);
  return (
    <Section title="Constraints" closed>
      <select
        class="text"
        aria-label="Add a constraint"
        value=""
        onChange={(event) => event.currentTarget.value && add(event.currentTarget.value)}
      >
        <option value="">Add a constraint</option>
        {state.constraintTables.value.map((table) => (
          <option key={table} value={table}>
            {kindOf(table)}
          </option>
        ))}
      </select>
      <textarea
        class="text"
        aria-label="Constraints"
        rows={Math.max(3, text.split("\n").length)}
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <Button
        label="Apply"
        hint="Hold these while posing; fill in the empty fields"
        onPress={() => setConstraints(text)}
      />
    </Section>
  );
}
