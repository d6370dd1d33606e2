// How the columns of a file become the fields of rows.
import type { Fields } from "../../api/narrow";
import { isRecord } from "../../api/narrow";
import { canonical, fieldValue, FIELDS, tagsOf, valueOfText, type Field } from "./cells";

export const TARGETS = ["input", "expected", "metadata", "tags", "id", "none"] as const;

export type Target = (typeof TARGETS)[number];

/** Which field each column of a file goes to. */
export type Mapping = ReadonlyMap<string, Target>;

const EXACT: Readonly<Record<string, Target>> = {
  id: "id",
  input: "input",
  inputs: "input",
  question: "input",
  query: "input",
  prompt: "input",
  messages: "input",
  expected: "expected",
  answer: "expected",
  output: "expected",
  outputs: "expected",
  ideal: "expected",
  target: "expected",
  label: "expected",
  reference: "expected",
  completion: "expected",
  metadata: "metadata",
  meta: "metadata",
  tags: "tags",
  tag: "tags",
  created: "none",
  origin: "none",
  _xact_id: "none",
  _pagination_key: "none",
};

/** The field that a name such as `input.question` starts with; null for others. */
function prefixOf(column: string): Field | null {
  const start = /^(input|expected|metadata)[._/]/i.exec(column)?.[1]?.toLowerCase();
  return FIELDS.find((field) => field === start) ?? null;
}

function guess(column: string): Target | null {
  const name = column.trim().toLowerCase();
  return Object.hasOwn(EXACT, name) ? (EXACT[name] ?? null) : prefixOf(column);
}

/** Guesses by the names of columns. The first unknown column is the input if no other is; the rest is metadata. */
export function guessed(columns: readonly string[]): Mapping {
  const known = new Map(columns.map((column) => [column, guess(column)]));
  const hasInput = [...known.values()].includes("input");
  const first = hasInput ? undefined : columns.find((column) => known.get(column) === null);
  return new Map(columns.map((column) => [column, column === first ? "input" : (known.get(column) ?? "metadata")]));
}

export interface Options {
  /** Whether numbers, true, false and null of tables are taken as such, and not as text. */
  readonly isExact: boolean;
}

/** The key of a column within the object of its field. */
const keyOf = (column: string, field: Field): string =>
  prefixOf(column) === field ? column.slice(field.length + 1) : column;

const fromTable = (value: unknown, field: Field, { isExact }: Options): unknown =>
  typeof value === "string" ? fieldValue(field, value, isExact) : value;

const isMissing = (value: unknown): boolean => value === undefined || value === null || value === "";

/** The value of a field: that of its only column, or an object of all of them. */
function valueIn(fields: Fields, field: Field, columns: readonly string[], options: Options): unknown {
  const [only] = columns;
  if (only === undefined) return undefined;
  const isWhole = columns.length === 1 && prefixOf(only) !== field;
  const value = fields[only];
  if (field === "tags") return [...new Set(columns.flatMap((column) => tagsOf(fromTable(fields[column], "tags", options))))];
  const isObject = isRecord(value) || (typeof value === "string" && value.trim().startsWith("{"));
  // Metadata of a JSON file that is no object is sent as it is: the server says at which line that is.
  const isWholeMetadata = isObject || (typeof value !== "string" && only.toLowerCase() === "metadata");
  if (isWhole && (field !== "metadata" || isWholeMetadata)) return fromTable(value, field, options);
  const entries = columns.flatMap((column): readonly (readonly [string, unknown])[] => {
    const inner = fields[column];
    if (isMissing(inner)) return [];
    const read = typeof inner === "string" ? valueOfText(inner, options.isExact) : inner;
    return [[keyOf(column, field), read]];
  });
  return entries.length === 0 ? null : Object.fromEntries(entries);
}

/** The row that a record becomes. Fields without a column are absent. */
export function rowOf(fields: Fields, mapping: Mapping, options: Options): Fields {
  const row: Record<string, unknown> = {};
  for (const [column, target] of mapping) {
    if (target !== "id" || isMissing(fields[column])) continue;
    const id = fields[column];
    row["id"] = typeof id === "string" ? id.trim() : canonical(id);
  }
  for (const field of FIELDS) {
    const columns = [...mapping].filter(([, target]) => target === field).map(([column]) => column);
    const value = valueIn(fields, field, columns, options);
    if (value === undefined) continue;
    row[field] = field === "tags" && Array.isArray(value) && value.length === 0 ? null : value;
  }
  return row;
}

/** The columns of some records, in the order in which they first occur. */
export const columnsOf = (records: readonly Fields[]): readonly string[] => [
  ...new Set(records.flatMap((record) => Object.keys(record))),
];
