// How values of a result are written: in cells, in the preview of a cell, and as JSON.
import type { Fields } from "../../api/narrow";
import { NOTHING } from "../../lib/numbers";
import type { Zone } from "../../lib/preferences";
import { clock, day } from "../../lib/time";

/** How many characters a cell shows; the preview shows more. */
const CELL_LENGTH = 240;
const PREVIEW_LINES = 12;
const PREVIEW_LENGTH = 4000;

/** What the values of a column are, as far as it matters for showing them. */
export type ColumnKind = "number" | "moment" | "text" | "other";

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/** The type words of a column's JSON Schema. */
function typesOf(schema: unknown): readonly string[] {
  if (!isObject(schema)) return [];
  const type: unknown = Reflect.get(schema, "type");
  const any: unknown = Reflect.get(schema, "anyOf");
  const own = Array.isArray(type) ? type.map(String) : typeof type === "string" ? [type] : [];
  return [...own, ...(Array.isArray(any) ? any.flatMap(typesOf) : [])];
}

const isMomentText = (value: unknown): boolean =>
  typeof value === "string" && /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z$/.test(value);

/** The kind of a column: from its schema, else from its values. */
export function kindOf(name: string, schema: unknown, rows: readonly Fields[]): ColumnKind {
  const types = typesOf(schema).filter((type) => type !== "null");
  if (types.length > 0 && types.every((type) => type === "number" || type === "integer")) return "number";
  if (isObject(schema) && JSON.stringify(schema).includes('"date-time"')) return "moment";
  const values = rows.map((row) => row[name]).filter((value) => value !== null && value !== undefined);
  if (values.length === 0) return types.includes("string") ? "text" : "other";
  if (values.every((value) => typeof value === "number")) return "number";
  if (values.every(isMomentText)) return "moment";
  return values.every((value) => typeof value === "string" || typeof value === "boolean") ? "text" : "other";
}

const fraction = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });

/** A number of a cell: whole ones in full, others with six digits. The tooltip has all of them. */
const numberText = (value: number): string => {
  if (Number.isInteger(value)) return Math.abs(value) < 1e15 ? value.toLocaleString("en-US") : String(value);
  const size = Math.abs(value);
  return size >= 1e-6 && size < 1e15 ? fraction.format(value) : value.toPrecision(6);
};

export function momentText(text: string, zone: Zone): string {
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? text : `${day(moment, zone)} ${clock(moment, zone)}`;
}

const size = (text: string): string => `${text.length.toLocaleString("en-US")} characters`;

/** The value as one line of a cell, cut where it is long. */
export function cellText(value: unknown, kind: ColumnKind, zone: Zone): string {
  if (value === null || value === undefined) return NOTHING;
  if (value === "") return '""';
  if (typeof value === "number") return numberText(value);
  if (typeof value === "string" && kind === "moment") return momentText(value, zone);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.slice(0, CELL_LENGTH).replace(/\s+/g, " ");
  return text.length > CELL_LENGTH ? `${line}… ${size(text)}` : line;
}

/** The value as text to copy: strings as they are, anything else as JSON. */
export const copyText = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value ?? null, null, 2);

/** The first lines of a value, for the preview of its cell; null if the cell shows all of it. */
export function previewText(value: unknown): string | null {
  if (value === null || value === undefined || typeof value === "number" || typeof value === "boolean") return null;
  const text = copyText(value);
  if (text.length <= 40 && !text.includes("\n")) return null;
  const lines = text.slice(0, PREVIEW_LENGTH).split("\n");
  const isCut = text.length > PREVIEW_LENGTH || lines.length > PREVIEW_LINES;
  return lines.slice(0, PREVIEW_LINES).join("\n") + (isCut ? `\n… ${size(text)}` : "");
}

/**
 * The columns in the order in which they are shown. Those that a star stands for come by the alphabet: of these the
 * ones without any value, and the server's own, go to the end.
 */
export function shownOrder(columns: readonly string[], rows: readonly Fields[], hasStar: boolean): readonly string[] {
  if (!hasStar) return columns;
  const isLast = (name: string): boolean => name.startsWith("_") || rows.every((row) => (row[name] ?? null) === null);
  return [...columns.filter((name) => !isLast(name)), ...columns.filter(isLast)];
}

/** The width of a column in pixels, from its name and its first values. */
export function widthOf(name: string, kind: ColumnKind, rows: readonly Fields[]): number {
  if (kind === "moment") return 192;
  const longest = rows
    .slice(0, 50)
    .reduce((most, row) => Math.max(most, cellText(row[name], kind, "utc").length), name.length + 2);
  return Math.round(Math.min(Math.max(longest * 7 + 20, 72), kind === "number" ? 180 : 360));
}
