import { defineConfig } from "vite";

// The page is served by `poise studio`; `npm run dev` stands in front of one that runs on its default port.
const STUDIO = "http://127.0.0.1:8420";

export default defineConfig({
  base: "./",
  build: { outDir: "dist", target: "es2022", chunkSizeWarningLimit: 1200 },
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  server: { proxy: { "/ws": { target: STUDIO, ws: true }, "/upload": STUDIO, "/files": STUDIO } },
});
