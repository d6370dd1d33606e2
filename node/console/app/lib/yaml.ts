// Writes values as YAML 1.2: blocks for objects, lists and texts of several lines. Without recursion.
import { Exact } from "./json";

/** Words and numbers that a reader would not take for a text, also one of YAML 1.1. */
const NOT_TEXT = /^(?:~|null|true|false|yes|no|on|off|y|n|\.inf|\.nan|[-+]?(?:\.inf|[\d.][\d_.,:xXoObBeE+a-fA-F-]*)|\d{4}-\d\d?-\d\d?.*)$/i;

/** Letters with which a plain text cannot begin, and what it cannot have within. */
const NOT_FIRST = /^[\s\-?:,[\]{}#&*!|>'"%@`=<]/;
const NOT_WITHIN = /: |:$| #|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]|\s$/u;

/** What a block of lines cannot have: it would be read otherwise, or not be seen. */
const NOT_IN_BLOCK = /[\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]|[^\P{Cc}\n\t]/u;

const isPlain = (text: string): boolean =>
  text !== "" && !NOT_TEXT.test(text) && !NOT_FIRST.test(text) && !NOT_WITHIN.test(text);

/** A text in quotes. JSON is YAML, except that letters which cannot be seen are named. */
const quoted = (text: string): string =>
  JSON.stringify(text).replace(
    /[\p{Cf}\p{Zl}\p{Zp}\u007f-\u009f\ufffe\uffff]/gu,
    (letter) =>
      [...Array(letter.length).keys()].map((at) => `\\u${letter.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );

const inline = (text: string): string => (isPlain(text) ? text : quoted(text));

/** A text of several lines as a block, or null if it cannot be one. */
function block(text: string, pad: string): string | null {
  if (!text.includes("\n") || /^\n*$/.test(text) || NOT_IN_BLOCK.test(text)) return null;
  const end = /\n*$/.exec(text)?.[0].length ?? 0;
  const lines = text.slice(0, text.length - end).split("\n");
  // the mark of the indent is needed where the first line with letters is indented by itself
  const first = lines.find((line) => line !== "") ?? "";
  const mark = /^\s/.test(first) || lines[0] === "" ? "2" : "";
  const chomp = end === 0 ? "-" : end === 1 ? "" : "+";
  const body = lines.map((line) => (line === "" ? "" : pad + line)).join("\n");
  return `|${mark}${chomp}\n${body}${"\n".repeat(Math.max(end - 1, 0))}`;
}

const isMany = (value: unknown): value is object => typeof value === "object" && value !== null && !(value instanceof Exact);

function scalar(value: unknown, pad: string): string {
  if (typeof value === "string") return block(value, pad) ?? inline(value);
  if (value instanceof Exact) return value.source;
  return JSON.stringify(value) ?? "null";
}

interface Printing {
  readonly entries: readonly (readonly [mark: string, value: unknown])[];
  readonly pad: string;
  at: number;
}

const entriesOf = (value: object): Printing["entries"] =>
  Array.isArray(value)
    ? value.map((one) => ["-", one] as const)
    : Object.entries(value)
        .filter(([, one]) => one !== undefined)
        .map(([key, one]) => [`${inline(key)}:`, one] as const);

/** Writes a value as YAML, with a line break at its end. */
export function printYaml(value: unknown): string {
  if (!isMany(value)) return `${scalar(value, "  ")}\n`;
  const parts: string[] = [];
  const stack: Printing[] = [{ entries: entriesOf(value), pad: "", at: 0 }];
  if (stack[0]?.entries.length === 0) return Array.isArray(value) ? "[]\n" : "{}\n";
  // whether the next line continues behind the dash of a list
  let isBehind = false;
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const entry = top.entries[top.at];
    if (entry === undefined) {
      stack.pop();
      continue;
    }
    top.at += 1;
    const [mark, inner] = entry;
    parts.push(isBehind ? "" : top.pad, mark, " ");
    isBehind = false;
    if (!isMany(inner)) {
      parts.push(scalar(inner, `${top.pad}  `), "\n");
      continue;
    }
    const entries = entriesOf(inner);
    if (entries.length === 0) parts.push(Array.isArray(inner) ? "[]\n" : "{}\n");
    else {
      isBehind = mark === "-";
      if (!isBehind) parts[parts.length - 1] = "\n";
      stack.push({ entries, pad: `${top.pad}  `, at: 0 });
    }
  }
  return parts.join("");
}
