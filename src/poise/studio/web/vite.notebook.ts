import { defineConfig } from "vite";

// One module with all it needs: a notebook loads the widget from a text, not from a server.
export default defineConfig({
  publicDir: false,
  build: {
    outDir: "dist",
    emptyOutDir: false,
    target: "es2022",
    chunkSizeWarningLimit: 1200,
    rollupOptions: {
      input: "src/notebook.ts",
      preserveEntrySignatures: "strict",
      output: { entryFileNames: "notebook.js", inlineDynamicImports: true },
    },
  },
});
