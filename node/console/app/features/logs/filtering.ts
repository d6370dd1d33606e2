// How the filter grows: by an expression of a value in a cell, and the range that holds a moment.
import type { LogRow } from "../../api/rows";
import { splitConjunction } from "../../btql/tokens";
import { called, conjunction, literal, negation, path } from "../../btql/write";
import { boundsOf, PRESETS, readRange } from "../../lib/range";
import type { ColumnSpec } from "./columns";
import { customsOf } from "./request";

type Plain = string | number | boolean;

const isPlain = (value: unknown): value is Plain =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";

const FIELDS: Readonly<Record<string, readonly string[]>> = {
  name: ["span_attributes", "name"],
  type: ["span_attributes", "type"],
  model: ["metadata", "model"],
  tokens: ["metrics", "total_tokens"],
  id: ["id"],
};

/** What a cell shows of a row, if it is one plain value. */
function plainOf(row: LogRow, column: string, columns: readonly ColumnSpec[]): Plain | null {
  switch (column) {
    case "name":
      return row.name;
    case "type":
      return row.type;
    case "model":
      return row.model;
    case "tokens":
      return row.tokens;
    case "id":
      return row.id === "" ? null : row.id;
    default: {
      const value = row.custom[customsOf({ columns }).indexOf(column)];
      return isPlain(value) ? value : null;
    }
  }
}

/** The condition that a row has what a cell shows; null for cells that nobody filters by. */
function conditionOf(row: LogRow, column: string, columns: readonly ColumnSpec[]): string | null {
  if ((column === "output" || column === "error") && row.isFailed) return `${path(["error"])} IS NOT NULL`;
  if (column === "tags") {
    const all = row.tags.map((tag) => `${path(["tags"])} INCLUDES ${literal(tag)}`);
    return all.length === 0 ? null : conjunction(all);
  }
  const value = plainOf(row, column, columns);
  if (value === null) return null;
  const field = FIELDS[column];
  return `${field === undefined ? `(${column})` : path(field)} = ${literal(value)}`;
}

/**
 * The expression that a click on a cell with `alt` filters by; null if the cell has none. What is excluded is excluded
 * of the whole trace, in which some spans have no such value at all.
 */
export function cellExpression(
  row: LogRow,
  column: string,
  columns: readonly ColumnSpec[],
  isExcluded: boolean,
): string | null {
  const condition = conditionOf(row, column, columns);
  return condition === null || !isExcluded ? condition : negation(called("any_span", condition));
}

/** The filter without its last condition; null if it has none, or cannot be taken apart. */
export function withoutLast(filter: string): string | null {
  const parts = splitConjunction(filter);
  return parts === null || parts.length === 0 ? null : conjunction(parts.slice(0, -1));
}

const HOUR_MS = 3_600_000;

const REACH: Readonly<Record<string, number>> = { "1h": 1, "6h": 6, "24h": 24, "7d": 168, "30d": 720 };

/** The shortest usual range that reaches from the present to a moment. */
export function rangeAround(moment: number, present: number): string {
  const age = present - moment;
  return PRESETS.find((preset) => age < (REACH[preset] ?? 0) * HOUR_MS) ?? "all";
}

/** The next wider range among the usual ones; null if there is none. */
export function widerRange(range: string): string | null {
  const read = readRange(range);
  if (read === null || read.kind === "all") return null;
  if (read.kind === "between") return "all";
  const { from } = boundsOf(range, 0);
  const hours = from === null ? 0 : -Date.parse(from) / HOUR_MS;
  return PRESETS.find((preset) => (REACH[preset] ?? 0) > hours) ?? "all";
}
