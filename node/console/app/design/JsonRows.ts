// The rows in which a JSON value is shown: one a key, and several for a long text that is open. Pure, and not recursive.
import { Exact, parseJson, printJson } from "../lib/json";

/** A step from a value to one inside it. */
export type Step = string | number;

export type Tone = "string" | "number" | "word" | "many" | "text";

export interface JsonRow {
  /** Identifies the row as long as the value does not change. */
  readonly id: string;
  readonly path: readonly Step[];
  readonly depth: number;
  /** The key or the index; null for the outermost value and for further lines of a text. */
  readonly label: Step | null;
  readonly text: string;
  readonly tone: Tone;
  /** How much is inside, such as `3 keys`; empty where the text says it all. */
  readonly size: string;
  /** Whether the row is open; null if there is nothing to open. */
  readonly isOpen: boolean | null;
  /** Whether the value is a text that is JSON. */
  readonly isEmbedded: boolean;
  /** The place among its siblings, from 1, and how many they are. */
  readonly at: number;
  readonly of: number;
}

/** What was opened or closed by hand, by the id of the row. */
export type Opened = ReadonlyMap<string, boolean>;

/** Texts that are JSON and are shown as what they say, by the id of the row. */
export type Embedded = ReadonlySet<string>;

/** Longer texts start folded. */
export const FOLD_FROM = 2048;

/** Deeper values are shown as text. */
export const DEPTH_MAX = 200;

/** How many rows a value has at first, about. */
const FIRST_ROWS = 200;

const CUT = 400;

type Entry = readonly [label: Step, value: unknown];

export const isMany = (value: unknown): value is object => typeof value === "object" && value !== null && !(value instanceof Exact);

export const entriesOf = (value: object): readonly Entry[] =>
  Array.isArray(value) ? value.map((one, index): Entry => [index, one]) : Object.entries(value);

/** A step as a part of a row's id; no two steps give the same. */
const stepId = (step: Step): string =>
  typeof step === "number" ? `/${step}` : `/'${step.replaceAll("~", "~0").replaceAll("/", "~1").replaceAll("#", "~2")}`;

export const idOf = (path: readonly Step[]): string => path.map(stepId).join("");

/** A path as people write it: `messages[0].content`, with quotes where a key is no plain word. */
export function pathText(path: readonly Step[]): string {
  const parts = path.map((step, index) => {
    if (typeof step === "number") return `[${step}]`;
    if (!/^[A-Za-z_$][\w$]*$/.test(step)) return `[${JSON.stringify(step)}]`;
    return index === 0 ? step : `.${step}`;
  });
  return parts.join("");
}

/** The value at a path, also through texts that are JSON; undefined if there is none. */
export function valueAt(value: unknown, path: readonly Step[]): unknown {
  let at = value;
  for (const step of path) {
    at = below(typeof at === "string" ? embeddedIn(at) : at, step);
  }
  return at;
}

const below = (value: unknown, step: Step): unknown =>
  isMany(value) ? Object.getOwnPropertyDescriptor(value, step)?.value : undefined;

/** Whether a path leads through a text that is JSON. Queries know no such paths. */
export function isInText(value: unknown, path: readonly Step[]): boolean {
  let at = value;
  return path.some((step) => {
    if (typeof at === "string") return true;
    at = below(at, step);
    return false;
  });
}

/** The object or list that a text says in JSON; null if it says none. */
export function embeddedIn(text: string): object | null {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    const value = parseJson(text);
    return isMany(value) ? value : null;
  } catch {
    return null;
  }
}

/** A size in bytes for people: `3.4 KB`. Letters count as one byte each. */
export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KB` : `${(count / 1024 / 1024).toFixed(1)} MB`;
}

const counted = (value: object, count: number): string => {
  const word = Array.isArray(value) ? "item" : "key";
  return `${count.toLocaleString("en-US")} ${word}${count === 1 ? "" : "s"}`;
};

const lengthOf = (value: object): number => (Array.isArray(value) ? value.length : Object.keys(value).length);

/** Returns the ids of objects and lists that are open at first: level by level, until there are enough rows. */
export function firstOpen(value: unknown): ReadonlySet<string> {
  const open = new Set<string>();
  let rows = 1;
  let level: (readonly [id: string, value: unknown])[] = [["", value]];
  while (level.length > 0 && rows < FIRST_ROWS) {
    const next: (readonly [id: string, value: unknown])[] = [];
    for (const [id, one] of level) {
      if (!isMany(one)) continue;
      const length = lengthOf(one);
      if (id !== "" && rows + length > FIRST_ROWS) continue;
      open.add(id);
      rows += length;
      if (length <= FIRST_ROWS) for (const [step, inner] of entriesOf(one)) next.push([id + stepId(step), inner]);
    }
    level = next;
  }
  return open;
}

/** The lines of a text, none longer than `columns` characters. */
export function linesOf(text: string, columns: number): readonly string[] {
  const width = Math.max(columns, 20);
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    if (line.length <= width) lines.push(line);
    else for (let at = 0; at < line.length; ) at += wrapped(line, at, width, lines);
  }
  return lines;
}

/** Adds a line that starts at a place and returns its length: up to a space if there is one, and never half a letter. */
function wrapped(line: string, at: number, width: number, lines: string[]): number {
  let length = Math.min(width, line.length - at);
  if (at + length < line.length) {
    const space = line.lastIndexOf(" ", at + length);
    if (space > at + width / 2) length = space + 1 - at;
    else if (/[\ud800-\udbff]/.test(line[at + length - 1] ?? "")) length -= 1;
  }
  lines.push(line.slice(at, at + length));
  return length;
}

export const wordOf = (value: unknown): string => (value === undefined ? "null" : String(value));

export interface RowsOptions {
  readonly opened: Opened;
  readonly first: ReadonlySet<string>;
  readonly embedded: Embedded;
  /** How many characters fit into a line of the outermost level. */
  readonly columns: number;
}

interface Open {
  readonly value: unknown;
  readonly path: readonly Step[];
  readonly id: string;
  readonly at: number;
  readonly of: number;
}

/** Adds the rows of a text, and what is inside of it if it is shown as JSON. */
function addText(rows: JsonRow[], text: string, open: Open, options: RowsOptions): object | null {
  const { id, path, at, of } = open;
  const depth = path.length;
  const label = path.at(-1) ?? null;
  const base = { id, path, depth, label, at, of, isEmbedded: depth < DEPTH_MAX && /^\s*[[{]/.test(text) };
  const inside = options.embedded.has(id) ? embeddedIn(text) : null;
  if (inside !== null) {
    const isOpen = options.opened.get(id) ?? true;
    rows.push({ ...base, text: "", tone: "many", size: `text, ${counted(inside, lengthOf(inside))}`, isOpen });
    return isOpen ? inside : null;
  }
  const columns = options.columns - 2 * depth - String(label ?? "").length - 4;
  const isShort = text.length <= columns && !text.includes("\n");
  if (isShort) {
    rows.push({ ...base, text: JSON.stringify(text), tone: "string", size: "", isOpen: null });
    return null;
  }
  const isOpen = options.opened.get(id) ?? text.length < FOLD_FROM;
  const size = bytes(text.length);
  rows.push({ ...base, text: isOpen ? "" : JSON.stringify(text.slice(0, CUT)), tone: "string", size, isOpen });
  if (!isOpen) return null;
  const lines = linesOf(text, options.columns - 2 * (depth + 1));
  lines.forEach((line, index) =>
    rows.push({
      id: `${id}#${index}`,
      path,
      depth: depth + 1,
      label: null,
      text: line,
      tone: "text",
      size: "",
      isOpen: null,
      isEmbedded: base.isEmbedded,
      at: index + 1,
      of: lines.length,
    }),
  );
  return null;
}

/** Adds the row of a value and returns what is open inside of it. */
function addRow(rows: JsonRow[], open: Open, options: RowsOptions): object | null {
  const { value, path, id, at, of } = open;
  if (typeof value === "string") return addText(rows, value, open, options);
  const base = { id, path, depth: path.length, label: path.at(-1) ?? null, at, of, isEmbedded: false };
  if (!isMany(value)) {
    const tone = typeof value === "number" || value instanceof Exact ? "number" : "word";
    rows.push({ ...base, text: wordOf(value), tone, size: "", isOpen: null });
    return null;
  }
  const count = lengthOf(value);
  if (count === 0) {
    rows.push({ ...base, text: Array.isArray(value) ? "[]" : "{}", tone: "word", size: "", isOpen: null });
    return null;
  }
  // the text of a value that is deeper cannot be opened as JSON again, so that depth ends here
  if (path.length >= DEPTH_MAX) return addText(rows, printJson(value, 0), open, options);
  const isOpen = options.opened.get(id) ?? options.first.has(id);
  rows.push({ ...base, text: isOpen ? "" : glimpse(value), tone: "many", size: counted(value, count), isOpen });
  return isOpen ? value : null;
}

/** The beginning of a folded value in one line. */
function glimpse(value: object): string {
  const parts: string[] = [];
  const isList = Array.isArray(value);
  for (const [step, inner] of isList ? entriesOf(value.slice(0, 6)) : entriesOf(value).slice(0, 6)) {
    const text = typeof inner === "string" ? JSON.stringify(inner.slice(0, 40)) : isMany(inner) ? (Array.isArray(inner) ? "[…]" : "{…}") : wordOf(inner);
    parts.push(isList ? text : `${step}: ${text}`);
  }
  return parts.join(", ");
}

/** Returns the rows that are shown of a value, from top to bottom. */
export function rowsOf(value: unknown, options: RowsOptions): readonly JsonRow[] {
  const rows: JsonRow[] = [];
  const open: Open[] = [{ value, path: [], id: "", at: 1, of: 1 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const inside = addRow(rows, next, options);
    if (inside === null) continue;
    const entries = entriesOf(inside);
    for (let at = entries.length - 1; at >= 0; at -= 1) {
      const [step, inner] = entries[at] ?? ["", null];
      open.push({ value: inner, path: [...next.path, step], id: next.id + stepId(step), at: at + 1, of: entries.length });
    }
  }
  return rows;
}
