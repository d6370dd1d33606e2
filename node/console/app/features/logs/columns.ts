// The columns of the logs: which there are, which are shown in which order, and how wide they are.
import type { GridColumnPlace } from "../../design/GridTypes";

/** A shown column: a word of a built-in one or an expression, and its width if it was changed. */
export interface ColumnSpec {
  readonly id: string;
  /** In pixels; 0 for the width by default. */
  readonly width: number;
}

interface BuiltIn {
  readonly title: string;
  readonly width: number;
  readonly isNumber: boolean;
  /** What rows are sorted by; absent if rows cannot be sorted by this column. */
  readonly sortBy?: string;
}

export const BUILT_IN = {
  time: { title: "Time", width: 140, isNumber: false, sortBy: "created" },
  arrived: { title: "Arrived", width: 140, isNumber: false, sortBy: "_pagination_key" },
  name: { title: "Name", width: 100, isNumber: false, sortBy: "span_attributes.name" },
  input: { title: "Input", width: 140, isNumber: false },
  output: { title: "Output", width: 140, isNumber: false },
  expected: { title: "Expected", width: 200, isNumber: false },
  scores: { title: "Scores", width: 128, isNumber: false },
  tokens: { title: "Tokens", width: 64, isNumber: true, sortBy: "metrics.total_tokens" },
  cost: { title: "Cost", width: 100, isNumber: true, sortBy: "metrics.estimated_cost" },
  duration: { title: "Duration", width: 76, isNumber: true, sortBy: "metrics.duration" },
  tags: { title: "Tags", width: 104, isNumber: false },
  type: { title: "Type", width: 80, isNumber: false, sortBy: "span_attributes.type" },
  model: { title: "Model", width: 120, isNumber: false, sortBy: "metadata.model" },
  error: { title: "Error", width: 220, isNumber: false },
  metadata: { title: "Metadata", width: 240, isNumber: false },
  id: { title: "Id", width: 160, isNumber: false, sortBy: "id" },
} as const satisfies Readonly<Record<string, BuiltIn>>;

export type BuiltInId = keyof typeof BUILT_IN;

export const BUILT_IN_IDS: readonly string[] = Object.keys(BUILT_IN);

export const isBuiltIn = (id: string): id is BuiltInId => BUILT_IN_IDS.includes(id);

const CUSTOM_WIDTH = 140;

/** What is known of a column. One that is not built in is an expression, which is its title too. */
export function columnOf(id: string): BuiltIn {
  return isBuiltIn(id) ? BUILT_IN[id] : { title: id, width: CUSTOM_WIDTH, isNumber: false, sortBy: id };
}

const shown = (...ids: readonly BuiltInId[]): readonly ColumnSpec[] => ids.map((id) => ({ id, width: 0 }));

export const COLUMNS_BY_DEFAULT: readonly ColumnSpec[] = shown(
  "time",
  "name",
  "input",
  "output",
  "scores",
  "tokens",
  "cost",
  "duration",
  "tags",
);

export const MIN_WIDTH = 40;
export const MAX_WIDTH = 1600;

const escaped = (id: string): string => id.replace(/[\\,:]/g, "\\$&");

const writeColumn = ({ id, width }: ColumnSpec): string => (width === 0 ? escaped(id) : `${escaped(id)}:${width}`);

/** Writes columns as one text: ids by commas, with a colon before a width. Those by default are the empty text. */
export function writeColumns(columns: readonly ColumnSpec[]): string {
  const text = columns.map(writeColumn).join(",");
  return text === COLUMNS_BY_DEFAULT.map(writeColumn).join(",") ? "" : text;
}

function readColumn(text: string): ColumnSpec | null {
  const found = /^((?:[^\\:]|\\[^])*)(?::(\d{1,4}))?$/.exec(text);
  const id = found?.[1]?.replace(/\\([^])/g, "$1") ?? "";
  if (id === "") return null;
  const width = Number(found?.[2] ?? 0);
  return { id, width: width === 0 ? 0 : Math.min(Math.max(width, MIN_WIDTH), MAX_WIDTH) };
}

/** Reads columns. What is not well-formed, and a column that was there before, is left out. */
export function readColumns(text: string): readonly ColumnSpec[] {
  const parts = text.match(/(?:[^\\,]|\\[^])+/g) ?? [];
  const columns = new Map<string, ColumnSpec>();
  for (const part of parts) {
    const column = readColumn(part);
    if (column !== null && !columns.has(column.id)) columns.set(column.id, column);
  }
  return columns.size === 0 ? COLUMNS_BY_DEFAULT : [...columns.values()];
}

/** Takes over the places that a person gave the columns in the grid. */
export function placed(columns: readonly ColumnSpec[], places: readonly GridColumnPlace[]): readonly ColumnSpec[] {
  const byId = new Map(columns.map((column) => [column.id, column]));
  return places.flatMap(({ id, width }) => {
    const before = byId.get(id);
    if (before === undefined) return [];
    return [{ id, width: width === columnOf(id).width ? 0 : width }];
  });
}

/** Adds a column at the end, or takes it away. One column always stays. */
export function toggled(columns: readonly ColumnSpec[], id: string): readonly ColumnSpec[] {
  if (columns.some((column) => column.id === id)) {
    const rest = columns.filter((column) => column.id !== id);
    return rest.length === 0 ? columns : rest;
  }
  return [...columns, { id, width: 0 }];
}

/** The sort after a click on a head: numbers and times first descending, then the other way, then none. */
export function nextSort(sort: string, id: string): string {
  const isDescendingFirst = id === "time" || columnOf(id).isNumber;
  if (id === "arrived") return sort === id ? "" : id;
  const [first, second] = isDescendingFirst ? [`-${id}`, id] : [id, `-${id}`];
  if (sort === first) return second;
  return sort === second ? "" : first;
}

/** The direction in which a column is sorted, for its head. Without a sort the rows that arrived last come first. */
export function directionOf(sort: string, id: string): "ascending" | "descending" | "none" {
  if (id === "arrived" && sort === "") return "descending";
  if (sort === id) return "ascending";
  return sort === `-${id}` ? "descending" : "none";
}
