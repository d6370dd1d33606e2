// How the console is built, tested and served while it is being worked on.
import { defineConfig } from "vitest/config";

const node = process.env["ASSAY_URL"] ?? "http://127.0.0.1:8000";

/** The feature that a file belongs to. Output is named after it, so that a changed screen renames its own files only. */
const featureOf = (path: string | null | undefined): string | undefined =>
  /(?:^|\/)features\/([a-z]+)\//.exec(path ?? "")?.[1];

export default defineConfig({
  base: "/app/",
  oxc: { jsx: { runtime: "automatic", importSource: "react" } },
  build: {
    target: "es2022",
    cssTarget: ["chrome123", "firefox125", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    sourcemap: false,
    reportCompressedSize: false,
    rolldownOptions: {
      onLog: (level, log, handle) => {
        if (log.code !== "MODULE_LEVEL_DIRECTIVE") handle(level, log);
      },
      output: {
        entryFileNames: "assets/[name]-[hash].js",
        chunkFileNames: (chunk) => `assets/${featureOf(chunk.facadeModuleId) ?? chunk.name}-[hash].js`,
        assetFileNames: (asset) => {
          const feature = featureOf(asset.originalFileNames[0]);
          return feature === undefined ? "assets/[name]-[hash][extname]" : `assets/${feature}-[hash][extname]`;
        },
        codeSplitting: {
          groups: [
            { name: "libraries", test: /\/node_modules\// },
            { name: "shell", test: /\/app\/(?:design|lib|api|frame)\// },
          ],
        },
      },
    },
  },
  server: { proxy: { "/console": node, "/v1": node } },
  test: { include: ["app/**/*.test.ts"], environment: "node" },
});
