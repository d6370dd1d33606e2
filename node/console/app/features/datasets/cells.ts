// The values of cells: how they are compared, shown in a line, and turned into text to edit and back.
import { LIST_PREVIEW, type DatasetRow } from "../../api/datasets";

/** The fields of a row that can be edited. */
export const FIELDS = ["input", "expected", "metadata", "tags"] as const;

export type Field = (typeof FIELDS)[number];

export const isField = (column: string): column is Field => FIELDS.some((field) => field === column);

/** How a cell is edited. */
export type CellKind = "text" | "json" | "tags";

/** What a cell holds, or what is wrong with its text. */
export type Read = { readonly value: unknown } | { readonly fault: string };

const sorted = (_: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
    : value;

/** A text that is the same for equal values, whatever the order of their keys. */
export const canonical = (value: unknown): string => JSON.stringify(value ?? null, sorted);

export const isSame = (a: unknown, b: unknown): boolean => a === b || canonical(a) === canonical(b);

/** Whether the server has cut a value of a list. */
export const isCut = (value: unknown): boolean =>
  typeof value === "string" && value.length === LIST_PREVIEW + 3 && value.endsWith("...");

export const hasCut = (row: DatasetRow): boolean => FIELDS.some((field) => isCut(row[field]));

const LINE = 400;

const isFields = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The text of a message's content: a text, or the parts that are texts. */
function contentOf(message: unknown): string | null {
  if (!isFields(message) || typeof message["role"] !== "string") return null;
  const content = message["content"];
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return null;
  const texts = content.flatMap((part) => (isFields(part) && typeof part["text"] === "string" ? [part["text"]] : []));
  return texts.length === 0 ? null : texts.join(" ");
}

/** The text of a chat's last message, and how many it has; null if a value is no chat. */
export function chatOf(value: unknown): { readonly text: string; readonly count: number } | null {
  const messages = isFields(value) ? value["messages"] : value;
  if (!Array.isArray(messages)) return null;
  const text = contentOf(messages.at(-1));
  return text === null ? null : { text, count: messages.length };
}

/** A value in one line: texts as they are, the rest as JSON. */
export function lineOf(value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (value === "") return '""';
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  const line = text.length > LINE ? `${text.slice(0, LINE)}…` : text;
  return line.replace(/\s+/g, " ");
}

/** A value in several lines, for a preview. */
export const blockOf = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value ?? null, null, 2) ?? "");

export const tagsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((tag) => typeof tag === "string") : [];

/** The kinds in which a field can be edited, the usual one first. */
export function kindsOf(field: Field, value: unknown): readonly CellKind[] {
  if (field === "tags") return ["tags", "json"];
  if (field === "metadata") return ["json"];
  return typeof value === "string" || value === null ? ["text", "json"] : ["json", "text"];
}

/** The text in which a value is edited. */
export function textOf(value: unknown, kind: CellKind): string {
  if (value === null || value === undefined) return "";
  if (kind === "tags") return tagsOf(value).join(", ");
  if (kind === "text" && typeof value === "string") return value;
  return JSON.stringify(value, null, 2);
}

const withoutDoubles = (tags: readonly string[]): readonly string[] => [...new Set(tags)];

function parsed(text: string): Read {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { fault: "This is not JSON." };
  }
}

/** What is wrong with a value in a field; null if nothing is. The server refuses the same. */
export function faultOf(field: Field, value: unknown): string | null {
  if (value === null) return null;
  if (field === "metadata") {
    return typeof value === "object" && !Array.isArray(value) ? null : "Metadata is an object or null.";
  }
  if (field !== "tags") return null;
  if (!Array.isArray(value) || !value.every((tag) => typeof tag === "string")) return "Tags are a list of texts.";
  return new Set(value).size === value.length ? null : "A tag occurs twice.";
}

/** Reads an edited text. An empty text is null, except in an input or expected value that was a text before. */
export function readCell(field: Field, text: string, kind: CellKind, before: unknown): Read {
  if (text.trim() === "" && (kind !== "text" || typeof before !== "string")) return { value: null };
  if (kind === "text") return { value: text };
  if (kind === "tags") {
    const tags = withoutDoubles(text.split(",").map((tag) => tag.trim()).filter((tag) => tag !== ""));
    return { value: tags.length === 0 ? null : tags };
  }
  const read = parsed(text);
  if ("fault" in read) return read;
  const fault = faultOf(field, read.value);
  return fault === null ? read : { fault };
}

/** The value of pasted or imported text: objects and lists where it is JSON, else text; with `isExact` also numbers. */
export function valueOfText(text: string, isExact = false): unknown {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const looks = /^[[{]/.test(trimmed) || (isExact && /^(?:-?\d|true$|false$|null$|")/.test(trimmed));
  if (!looks) return text;
  const read = parsed(trimmed);
  return "fault" in read || isInexact(read.value) ? text : read.value;
}

/** Whether a number is one that JavaScript cannot hold, so that its text says more. */
const isInexact = (value: unknown): boolean =>
  typeof value === "number" && (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value)));

/** The value that a text gives in a field. */
export function fieldValue(field: Field, text: string, isExact = false): unknown {
  const value = valueOfText(text, isExact);
  if (value === null) return null;
  if (field === "tags") {
    if (Array.isArray(value)) return withoutDoubles(value.map((tag) => (typeof tag === "string" ? tag : JSON.stringify(tag))));
    return readTags(text);
  }
  if (field === "metadata") return typeof value === "object" && !Array.isArray(value) ? value : { value };
  return value;
}

function readTags(text: string): readonly string[] | null {
  const tags = withoutDoubles(text.split(/[,;|]/).map((tag) => tag.trim()).filter((tag) => tag !== ""));
  return tags.length === 0 ? null : tags;
}
