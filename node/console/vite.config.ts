// How the console is built, tested and served while it is being worked on.
import { createHash } from "node:crypto";
import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const node = process.env["ASSAY_URL"] ?? "http://127.0.0.1:8000";

const root = fileURLToPath(new URL(".", import.meta.url));

/** The file of each suffix of class names. */
const suffixes = new Map<string, string>();

/**
 * The name of a class in the output. All classes of a file have one suffix, so that the names compress well. The
 * suffix depends on the path alone, so that a changed file renames no class.
 */
function className(name: string, file: string): string {
  const path = relative(root, file.split("?", 1)[0] ?? file).split(sep).join("/");
  const suffix = createHash("sha256").update(path).digest("base64url").replaceAll(/[-_]/g, "").slice(0, 4);
  const other = suffixes.get(suffix) ?? path;
  if (other !== path) throw new Error(`${path}: the suffix of its class names is that of ${other}. Rename one of the files.`);
  suffixes.set(suffix, path);
  return `${name}_${suffix}`;
}

/**
 * The feature that a file belongs to. Output is named after it, so that a changed screen renames its own files only. The
 * filter bar has a name of its own, because two screens have it.
 */
const featureOf = (path: string | null | undefined): string | undefined =>
  /(?:^|\/)features\/(?:logs\/(?=filter\/))?([a-z]+)\//.exec(path ?? "")?.[1];

/** Parts that only some screens need. The order of the groups below keeps what all screens need out of them. */
const LATER = {
  chart: /\/node_modules\/uplot\/|\/app\/design\/LineChart/,
};

/** What every screen needs of the packages. Lists of queries are left to the few screens that have some. */
const LIBRARIES = /\/node_modules\/(?:preact|@preact|@tanstack|react|react-dom)\/(?!.*\/(?:queriesObserver|useQueries)\.)/;

/** What every screen needs, or the frame around it. What only some screens need gets chunks of its own. */
const SHELL =
  /\/app\/(?:frame\/|lib\/|api\/(?:client|gate|narrow|queries|reads|schema)\.|design\/(?:Button|classes|Copy|Dialog|Empty|ErrorState|Field|Icon|Kbd|Loaded|Menu|ScreenSkeleton|Skeleton|Toast|base|tokens)\.)/;

/** Parts of lib and of the frame that only some screens need, or that are opened later. */
const SHELL_LATER = /\/app\/(?:frame\/(?:Palette|ranking|ReviewScreens|SettingsScreens)\.|lib\/(?:buckets|yaml|range|rangeWords|selection|version|trace|quoting|csv|diff)\.)/;

export default defineConfig({
  base: "/app/",
  oxc: { jsx: { runtime: "automatic", importSource: "react" } },
  css: { modules: { generateScopedName: className } },
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
            { name: "libraries", test: LIBRARIES },
            { name: "shell", test: (id) => SHELL.test(id) && !SHELL_LATER.test(id) },
            { name: "grid", test: /\/app\/(?:design\/Grid|lib\/selection\.)/ },
            { name: "filter", test: /\/app\/(?:btql\/(?!completion|toggles|words)|design\/(?:Combobox|ComboboxLogic|PopoverLogic|TimeRange)\.|lib\/(?:range|version)\.|api\/(?:query|rows)\.)/ },
            { name: "logs", test: /\/features\/logs\/(?:faults|hidden|kept|opening|queries|request|tail|views)\./ },
            { name: "filterbar", test: /\/features\/logs\/filter\/(?:fields|FilterBar|index|queries|scope)\./ },
            { name: "viewers", test: /\/app\/design\/(?:Json|Markdown|Diff)/ },
            { name: "chart", test: (id) => LATER.chart.test(id) },
          ],
        },
      },
    },
  },
  server: { proxy: { "/console": node, "/v1": node, "/btql": node, "/logs3": node } },
  // The time limit only ends what hangs: these tests run beside builds, with the lowest priority.
  test: { include: ["app/**/*.test.ts"], environment: "node", testTimeout: 300_000 },
});
