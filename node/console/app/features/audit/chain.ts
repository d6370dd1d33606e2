// The hash chain of an audit log: every entry has a hash over its content and over the hash of the entry before it.
//
// The hash is BLAKE3 over the entry in JSON, with its keys in order and without blanks. The number and the previous hash
// belong to the content; the hash itself and what says where the row is stored do not.
import { Exact } from "../../lib/json";
import { deriver } from "./blake3";

export type Entry = Readonly<Record<string, unknown>>;

/** An entry by its number and its hash, which stand for all entries up to it. */
export interface Seal {
  readonly sequence: number;
  readonly hash: string;
}

/** What stands before the first entry. */
export const BEGINNING: Seal = { sequence: 0, hash: "0".repeat(64) };

/** What is wrong at an entry. */
export type FaultKind =
  /** Other entries are in the place of this one. */
  | "missing"
  /** An entry is here that belongs to another place. */
  | "misplaced"
  /** The entry names another hash before it. */
  | "unlinked"
  /** The content does not have the entry's hash. */
  | "changed"
  /** The entry is whole, but it had another hash before. */
  | "rewritten"
  /** The log ends before an entry that it had. */
  | "cut";

export interface Fault {
  readonly kind: FaultKind;
  /** The number of the entry that is wrong. */
  readonly sequence: number;
  /** The number of the entry that stands there; null if there is none. */
  readonly found: number | null;
}

const NOT_HASHED: ReadonlySet<string> = new Set(["hash", "id", "org_id", "_xact_id", "_pagination_key"]);

const derive = deriver("assay audit entry 1");
const encoder = new TextEncoder();

/** The code points of a text, which are in the order of its bytes of UTF-8, unlike its units. */
const codePoints = (text: string): readonly number[] => [...text].map((letter) => letter.codePointAt(0) ?? 0);

function byCodePoints(left: string, right: string): number {
  const [a, b] = [codePoints(left), codePoints(right)];
  const at = a.findIndex((point, place) => point !== b[place]);
  return at < 0 ? a.length - b.length : (a[at] ?? 0) - (b[at] ?? -1);
}

/** Sorts the keys of an object by their bytes of UTF-8. Few have letters that need more than a look at the units. */
const sorted = (keys: readonly string[]): readonly string[] =>
  keys.some((key) => /[\ud800-\uffff]/.test(key)) ? keys.toSorted(byCodePoints) : keys.toSorted();

/** Writes JSON without blanks and with its keys in order. The server refuses what is nested deeper than 128. */
function canonical(value: unknown): string {
  if (value instanceof Exact) return value.source;
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value ?? null);
  const members = new Map<string, unknown>(Object.entries(value));
  return `{${sorted([...members.keys()]).map((key) => `${JSON.stringify(key)}:${canonical(members.get(key))}`).join(",")}}`;
}

/** The hash that the content of an entry has. Numbers have to be read with all their digits. */
export function hashOf(entry: Entry): string {
  const content = Object.fromEntries(Object.entries(entry).filter(([key]) => !NOT_HASHED.has(key)));
  return derive(encoder.encode(canonical(content)));
}

function faultAt(entry: Entry, before: Seal, known: readonly Seal[]): Fault | null {
  const next = before.sequence + 1;
  const found = typeof entry["sequence"] === "number" ? entry["sequence"] : null;
  const fault = (kind: FaultKind): Fault => ({ kind, sequence: next, found });
  if (found !== next) return fault(found !== null && found > next ? "missing" : "misplaced");
  if (entry["previous_hash"] !== before.hash) return fault("unlinked");
  if (entry["hash"] !== hashOf(entry)) return fault("changed");
  return known.some((seal) => seal.sequence === next && seal.hash !== entry["hash"]) ? fault("rewritten") : null;
}

/** How far a chain is whole, and what is wrong behind that. */
export interface Verified {
  readonly seal: Seal;
  readonly fault: Fault | null;
}

/**
 * Verifies entries, the oldest first, that follow on an entry. `known` are entries that the log had before: they have to
 * be in it still.
 */
export function verified(entries: readonly Entry[], before: Seal, known: readonly Seal[]): Verified {
  let seal = before;
  for (const entry of entries) {
    const fault = faultAt(entry, seal, known);
    if (fault !== null) return { seal, fault };
    seal = { sequence: seal.sequence + 1, hash: String(entry["hash"]) };
  }
  return { seal, fault: null };
}

/** What is wrong at the end of a log whose entries were all verified: it may end too early. */
export const faultOfEnd = (seal: Seal, known: readonly Seal[]): Fault | null =>
  known.some(({ sequence }) => sequence > seal.sequence) ? { kind: "cut", sequence: seal.sequence + 1, found: null } : null;

/** What stands before an entry by its own words, so that a chain can be verified from it on. */
export const beforeOf = (entry: Entry, sequence: number): Seal => ({
  sequence: sequence - 1,
  hash: String(entry["previous_hash"]),
});

/** Reads what `sealText` writes; null for any other text. */
export function readSeal(text: string): Seal | null {
  const [, sequence = "", hash = ""] = /^\s*#?(\d{1,15})[\s:]+([0-9a-f]{64})\s*$/.exec(text) ?? [];
  return hash === "" || Number(sequence) === 0 ? null : { sequence: Number(sequence), hash };
}

export const sealText = ({ sequence, hash }: Seal): string => `${sequence} ${hash}`;
