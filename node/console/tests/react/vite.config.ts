// Builds the console on React 19 in the place of Preact, to show that nothing depends on Preact. The program never has it.
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { mergeConfig, type Plugin } from "vite";
import { defineConfig } from "vitest/config";
import console from "../../vite.config";

const own = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

const JSX = own("jsx-runtime.ts");

/** What stands for each module. Its own imports of the module below it get React's. */
const INSTEAD: Readonly<Record<string, string>> = {
  react: "react-19",
  "react-dom": "react-dom-19",
  "react-dom/client": "react-dom-19/client",
  "react/jsx-runtime": "react-19/jsx-runtime",
};

const onReact: Plugin = {
  name: "on-react",
  enforce: "pre",
  async resolveId(source, importer) {
    if (source === "react/jsx-runtime" && importer !== JSX) return JSX;
    if (source === "@preact/signals") return own("signals.ts");
    const real = INSTEAD[source];
    return real === undefined ? null : this.resolve(real, importer, { skipSelf: true });
  },
};

function folder(): string {
  const given = process.env["ASSAY_REACT_DIR"] ?? "";
  if (given === "") throw new Error("set ASSAY_REACT_DIR to the folder for the build; it is emptied first");
  const path = resolve(given);
  if (path === own("../../dist")) throw new Error("ASSAY_REACT_DIR is dist, which has the build on Preact");
  mkdirSync(path, { recursive: true });
  return path;
}

export default mergeConfig(
  console,
  defineConfig({ root: own("../.."), plugins: [onReact], build: { outDir: folder(), emptyOutDir: true, manifest: false } }),
);
