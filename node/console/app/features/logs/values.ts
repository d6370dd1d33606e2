// How values are written in cells and previews.
import type { LogRow } from "../../api/rows";
import { NOTHING } from "../../lib/numbers";

/** A value in one line: texts as they are, the rest as JSON. */
export function lineOf(value: unknown): string {
  if (value === null || value === undefined) return NOTHING;
  if (value === "") return '""';
  if (typeof value === "string") return value.replace(/\s+/g, " ").slice(0, 400);
  return JSON.stringify(value).slice(0, 400);
}

/** The second in which a row arrived, out of its key: `p`, then the seconds above 32 bits. */
export const arrivedAt = ({ arrival }: LogRow): string | null =>
  arrival === null ? null : new Date(Number(BigInt(arrival.slice(1)) >> 32n) * 1000).toISOString();

/** The message of an error: its text, or the text inside of what SDKs send as objects. */
export function errorLine(error: unknown): string {
  if (typeof error === "object" && error !== null && "message" in error && typeof error.message === "string") {
    return lineOf(error.message);
  }
  return error === null ? "A span of this trace failed" : lineOf(error);
}

/** A value in several lines, for a preview; JSON that was sent as text is laid out too. */
export function blockOf(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  if (!/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

/** What stands in the cell of an input: of a chat the last message. */
export const inputLine = (row: LogRow): string => lineOf(row.inputText ?? row.input);

export const outputLine = (row: LogRow): string => lineOf(row.outputText ?? row.output);
