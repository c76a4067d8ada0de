/** The colours of the stage and the canvases, light and dark. */
export interface Palette {
  readonly background: string;
  readonly backgroundFar: string;
  readonly grid: string;
  readonly gridStrong: string;
  readonly shadow: number;
  readonly ink: string;
  readonly quiet: string;
  readonly line: string;
  readonly surface: string;
  readonly accent: string;
  readonly warm: string;
  readonly danger: string;
  readonly good: string;
  readonly ghost: string;
  readonly tones: readonly string[];
}

export const LIGHT: Palette = {
  background: "#f3f3f1",
  backgroundFar: "#dfe1e3",
  grid: "#c9ccd1",
  gridStrong: "#b3b7be",
  shadow: 0.26,
  ink: "#1d2026",
  quiet: "#5a606b",
  line: "#d6d8dc",
  surface: "#ffffff",
  accent: "#2563d9",
  warm: "#c26a00",
  danger: "#c8322b",
  good: "#1f8a55",
  ghost: "#5b78a8",
  tones: ["#e8d3b0", "#a9885f", "#6c9fd0", "#3f6d9f", "#e6985c", "#b3652f"],
};

export const DARK: Palette = {
  background: "#24272d",
  backgroundFar: "#17191d",
  grid: "#3d424b",
  gridStrong: "#565d69",
  shadow: 0.5,
  ink: "#e9ebee",
  quiet: "#a8afba",
  line: "#363b43",
  surface: "#1f2227",
  accent: "#6ea3ff",
  warm: "#f0a94a",
  danger: "#ff7a70",
  good: "#5cc992",
  ghost: "#9db7e6",
  tones: ["#dcc6a2", "#94754f", "#5e92c6", "#355f8d", "#d98a4d", "#a05826"],
};
