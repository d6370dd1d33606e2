// Reads and writes JSON without losing digits and without recursion, so that neither size nor depth is a limit.

/** A number that JavaScript cannot hold or would write otherwise, as it stands in the text. */
export class Exact {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
  toString(): string {
    return this.source;
  }
  /** The nearest number, for code that knows only numbers. */
  toJSON(): number {
    return Number(this.source);
  }
}

/** Where a text may have a number that is not written as JavaScript writes it. */
const UNUSUAL = /(?:^|[[:,\s])-?(?:\d{16}|\d+\.(?:\d*0(?!\d)|\d{13})|\d+(?:\.\d+)?[eE]|(?<=-)0(?![.\d]))/;

function numberOf(source: string): number | Exact {
  const number = Number(source);
  return String(number) === source ? number : new Exact(source);
}

/** The place after a string that begins at a place. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text[at - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return at + 1;
  }
  return text.length;
}

interface Open {
  readonly value: unknown[] | Record<string, unknown>;
  key: string | null;
}

function put(open: Open, value: unknown): void {
  if (Array.isArray(open.value)) open.value.push(value);
  else {
    Object.defineProperty(open.value, open.key ?? "", { value, writable: true, enumerable: true, configurable: true });
    open.key = null;
  }
}

const WORD = /-?\d[\d.eE+-]*|true|false|null/y;

/** The scalar that begins at a place, and where it ends. */
function scalarAt(text: string, at: number): readonly [value: unknown, end: number] {
  if (text[at] === '"') {
    const end = endOfString(text, at);
    return [JSON.parse(text.slice(at, end)), end];
  }
  WORD.lastIndex = at;
  const word = WORD.exec(text)?.[0] ?? " ";
  return [/^[-\d]/.test(word) ? numberOf(word) : word === "null" ? null : word === "true", at + word.length];
}

/** Reads a text that is known to be JSON, with exact numbers. */
function readExact(text: string): unknown {
  const root: Open = { value: [], key: null };
  const stack: Open[] = [root];
  for (let at = 0; at < text.length; ) {
    const letter = text[at] ?? "";
    const open = stack.at(-1) ?? root;
    if (letter === "{" || letter === "[") {
      const value = letter === "[" ? [] : {};
      put(open, value);
      stack.push({ value, key: null });
      at += 1;
    } else if (letter === "}" || letter === "]") {
      stack.pop();
      at += 1;
    } else if (/[\s,:]/.test(letter)) at += 1;
    else {
      const [value, end] = scalarAt(text, at);
      const isKey = !Array.isArray(open.value) && open.key === null;
      if (isKey && typeof value === "string") open.key = value;
      else put(open, value);
      at = end;
    }
  }
  return Array.isArray(root.value) ? root.value[0] : undefined;
}

/** Reads JSON. Numbers that JavaScript would write otherwise become `Exact`. Throws as `JSON.parse` does. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return UNUSUAL.test(text) ? readExact(text) : value;
}

const isMany = (value: unknown): value is object => typeof value === "object" && value !== null && !(value instanceof Exact);

function scalarText(value: unknown): string {
  return value instanceof Exact ? value.source : (JSON.stringify(value) ?? "null");
}

interface Printing {
  readonly entries: readonly (readonly [key: string | null, value: unknown])[];
  readonly close: string;
  at: number;
}

const entriesOf = (value: object): Printing["entries"] =>
  Array.isArray(value)
    ? value.map((one) => [null, one] as const)
    : Object.entries(value).filter(([, one]) => one !== undefined && typeof one !== "function");

/** Writes JSON as `JSON.stringify` does; with an indent of 0 in one line. */
export function printJson(value: unknown, indent = 2): string {
  const parts: string[] = [];
  const stack: Printing[] = [];
  const gap = indent === 0 ? ":" : ": ";
  const newLine = (): void => void (indent > 0 && parts.push("\n", " ".repeat(indent * stack.length)));
  const print = (one: unknown): void => {
    if (!isMany(one)) parts.push(scalarText(one));
    else {
      const [open, close] = Array.isArray(one) ? ["[", "]"] : ["{", "}"];
      const entries = entriesOf(one);
      parts.push(entries.length === 0 ? `${open}${close}` : (open ?? ""));
      if (entries.length > 0) stack.push({ entries, close: close ?? "", at: 0 });
    }
  };
  print(value);
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const entry = top.entries[top.at];
    if (entry === undefined) {
      stack.pop();
      newLine();
      parts.push(top.close);
      continue;
    }
    if (top.at > 0) parts.push(",");
    newLine();
    top.at += 1;
    if (entry[0] !== null) parts.push(JSON.stringify(entry[0]), gap);
    print(entry[1]);
  }
  return parts.join("");
}

/** A value as people read it: a text as it is, anything else as JSON. */
export const asText = (value: unknown): string => (typeof value === "string" ? value : printJson(value));

/** The number that a value is, also one that is exact; null for anything else. */
export function numeric(value: unknown): number | null {
  const number = value instanceof Exact ? Number(value.source) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}
