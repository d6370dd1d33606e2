// What the caller of the flows decides, read from the environment.
import { fileURLToPath } from "node:url";

const given = (name: string): string | null => {
  const value = process.env[name];
  return value === undefined || value === "" ? null : value;
};

const missing = (name: string): Error => new Error(`set ${name}; tests/README.md says what the flows need`);

function needed(name: string): string {
  const value = given(name);
  if (value === null) throw missing(name);
  return value;
}

function number(name: string, otherwise: number): number {
  const value = Number(given(name) ?? otherwise);
  if (!Number.isInteger(value) || value < 0) throw new Error(`${name} has to be a whole number`);
  return value;
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, "");

export interface Oidc {
  readonly url: string;
  /** The address where the flows start the provider, as the settings of the server name it. */
  readonly issuer: string;
  /** A key of the owner, who is the person that the provider signs in. */
  readonly key: string;
}

export interface Environment {
  /** The nodes of one cluster. */
  readonly nodes: readonly string[];
  /** A key of an owner, who is called Ann. */
  readonly key: string;
  /** A service token of an owner, which alone may make the accounts of Ben and Cy. */
  readonly serviceToken: string;
  /** A server that nobody has used, with the key of its owner. */
  readonly fresh: { readonly url: string; readonly key: string };
  /** A server that signs people in with the provider of the flows, or null. */
  readonly oidc: Oidc | null;
  /** The address of somebody who belongs to another organization of the cluster, or null if there is none. */
  readonly stranger: string | null;
  /** Where screenshots go, or null for none. */
  readonly shots: string | null;
  /** A build to show in the place of the one inside the servers, or null. */
  readonly consoleDir: string | null;
  /** The build whose bytes are counted. */
  readonly dist: string;
  readonly chromium: string;
  /** Rows of `wide` when times are measured. */
  readonly wideRows: number;
  readonly tailSeconds: number;
  /** The file in which measured times are kept, or null. */
  readonly report: string | null;
  readonly bigSpans: number;
  readonly bigPayloads: number;
}

function readOidc(): Oidc | null {
  const url = given("ASSAY_FLOWS_OIDC_URL");
  if (url === null) return null;
  return { url: withoutSlash(url), issuer: needed("ASSAY_FLOWS_OIDC_ISSUER"), key: needed("ASSAY_FLOWS_OIDC_KEY") };
}

/** The server with the provider, which the flows of tests/oidc cannot do without. */
export function neededOidc({ oidc }: Environment): Oidc {
  if (oidc === null) throw missing("ASSAY_FLOWS_OIDC_URL");
  return oidc;
}

export function readEnvironment(): Environment {
  const key = needed("ASSAY_FLOWS_KEY");
  const consoleDir = given("ASSAY_FLOWS_CONSOLE_DIR");
  return {
    nodes: needed("ASSAY_FLOWS_URLS").split(",").map(withoutSlash),
    key,
    serviceToken: given("ASSAY_FLOWS_SERVICE_TOKEN") ?? key,
    fresh: { url: withoutSlash(needed("ASSAY_FLOWS_FRESH_URL")), key: needed("ASSAY_FLOWS_FRESH_KEY") },
    oidc: readOidc(),
    stranger: given("ASSAY_FLOWS_STRANGER"),
    shots: given("ASSAY_FLOWS_SHOTS"),
    consoleDir,
    dist: given("ASSAY_FLOWS_DIST") ?? consoleDir ?? fileURLToPath(new URL("../../dist", import.meta.url)),
    chromium: given("ASSAY_CHROMIUM") ?? "/usr/bin/chromium-headless-shell",
    wideRows: number("ASSAY_FLOWS_WIDE_ROWS", 200_000),
    tailSeconds: number("ASSAY_FLOWS_TAIL_SECONDS", 30),
    report: given("ASSAY_FLOWS_REPORT"),
    bigSpans: number("ASSAY_FLOWS_BIG_SPANS", 30_000),
    bigPayloads: number("ASSAY_FLOWS_BIG_PAYLOADS", 4),
  };
}
