// What the caller of the flows decides, read from the environment.
import { fileURLToPath } from "node:url";

const given = (name: string): string | null => {
  const value = process.env[name];
  return value === undefined || value === "" ? null : value;
};

function needed(name: string): string {
  const value = given(name);
  if (value === null) throw new Error(`set ${name}; tests/README.md says what the flows need`);
  return value;
}

function number(name: string, otherwise: number): number {
  const value = Number(given(name) ?? otherwise);
  if (!Number.isInteger(value) || value < 0) throw new Error(`${name} has to be a whole number`);
  return value;
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, "");

export interface Environment {
  /** The nodes of one cluster. */
  readonly nodes: readonly string[];
  /** A key of an owner, who is called Ann. */
  readonly key: string;
  /** A service token of an owner, which alone may make the accounts of Ben and Cy. */
  readonly serviceToken: string;
  /** A server that nobody has used, with the key of its owner. */
  readonly fresh: { readonly url: string; readonly key: string };
  /** Where screenshots go, or null for none. */
  readonly shots: string | null;
  /** A build to show in the place of the one inside the servers, or null. */
  readonly consoleDir: string | null;
  /** The build whose bytes are counted. */
  readonly dist: string;
  readonly chromium: string;
  readonly wideRows: number;
  readonly bigSpans: number;
  readonly bigPayloads: number;
}

export function readEnvironment(): Environment {
  const key = needed("ASSAY_FLOWS_KEY");
  const consoleDir = given("ASSAY_FLOWS_CONSOLE_DIR");
  return {
    nodes: needed("ASSAY_FLOWS_URLS").split(",").map(withoutSlash),
    key,
    serviceToken: given("ASSAY_FLOWS_SERVICE_TOKEN") ?? key,
    fresh: { url: withoutSlash(needed("ASSAY_FLOWS_FRESH_URL")), key: needed("ASSAY_FLOWS_FRESH_KEY") },
    shots: given("ASSAY_FLOWS_SHOTS"),
    consoleDir,
    dist: given("ASSAY_FLOWS_DIST") ?? consoleDir ?? fileURLToPath(new URL("../../dist", import.meta.url)),
    chromium: given("ASSAY_CHROMIUM") ?? "/usr/bin/chromium",
    wideRows: number("ASSAY_FLOWS_WIDE_ROWS", 5000),
    bigSpans: number("ASSAY_FLOWS_BIG_SPANS", 30_000),
    bigPayloads: number("ASSAY_FLOWS_BIG_PAYLOADS", 4),
  };
}
