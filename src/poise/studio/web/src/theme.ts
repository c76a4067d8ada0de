/** Light and dark: which one is shown. */
import { computed, effect, signal } from "@preact/signals";
import { DARK, LIGHT } from "./palettes";

export type ThemeName = "light" | "dark";

const REMEMBERED = "poise.theme";

function firstTheme(): ThemeName {
  const kept = localStorage.getItem(REMEMBERED);
  if (kept === "light" || kept === "dark") return kept;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export const theme = signal<ThemeName>(firstTheme());
export const palette = computed(() => (theme.value === "dark" ? DARK : LIGHT));

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(REMEMBERED, theme.value);
}

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});
