// The words of the query language: clauses, keywords, functions and sources.
import { AGGREGATES, ROW_FUNCTIONS } from "../../btql/words";
import type { EditorTokenKind } from "../../design/EditorTypes";

export interface Word {
  readonly name: string;
  /** What it does, in a sentence. */
  readonly about: string;
  /** What is written for it, if that is more than its name. */
  readonly apply?: string;
  readonly kind: EditorTokenKind;
}

function words(kind: EditorTokenKind, list: readonly (readonly [string, string, string?])[]): readonly Word[] {
  return list.map(([name, about, apply]) => ({ name, about, kind, ...(apply === undefined ? {} : { apply }) }));
}

/** Clauses, each written with a colon. */
export const CLAUSES = words("keyword", [
  ["select", "The columns of the result."],
  ["from", "What is read, with an optional shape: spans, traces or summary."],
  ["filter", "The condition that rows fulfil."],
  ["dimensions", "What rows are grouped by."],
  ["measures", "Aggregates of each group."],
  ["sort", "The order of the rows, each with asc or desc."],
  ["limit", "How many rows the result has at most."],
  ["infer", "Lists the fields of rows with their types and commonest values."],
  ["unpivot", "Makes a row of each member of an object or an array."],
  ["pivot", "Makes a column of each value of a dimension."],
  ["sample", "Reads a share or a number of the rows."],
  ["cursor", "Where the page starts, as the page before gave it."],
  ["preview_length", "How many characters of large fields are returned."],
  ["span_filter", "Selects traces by a condition on one span."],
  ["trace_filter", "Keeps of the selected traces the spans that fulfil a condition."],
  ["final_filter", "A condition on groups."],
  ["inference_budget", "How many rows are looked at to list fields."],
  ["comparison_key", "What pairs the rows of experiments."],
]);

/** What starts each part of an SQL query. The order is that in which they are written. */
export const SQL_CLAUSES = words("keyword", [
  ["SELECT", "The columns of the result."],
  ["FROM", "What is read."],
  ["WHERE", "The condition that rows fulfil."],
  ["GROUP BY", "What rows are grouped by."],
  ["HAVING", "A condition on groups."],
  ["ORDER BY", "The order of the rows."],
  ["LIMIT", "How many rows the result has at most."],
  ["OFFSET", "The cursor at which the page starts."],
  ["UNPIVOT", "Makes a row of each member of an object or an array."],
  ["PIVOT", "Makes a column of each value of a column."],
  ["TABLESAMPLE", "Reads a share or a number of the rows."],
]);

export const SHAPES = words("keyword", [
  ["spans", "A row is a span. This is the default."],
  ["traces", "Whole traces: all spans of every trace in which a span fulfils the filter."],
  ["summary", "A row is a trace, with scores and metrics of all its spans."],
]);

export const OPERATORS = words("keyword", [
  ["and", "Both conditions hold."],
  ["or", "One of the conditions holds."],
  ["not", "The condition does not hold."],
  ["is null", "The value is missing."],
  ["is not null", "The value is there."],
  ["in", "The value is one of a list."],
  ["between", "The value lies within two bounds, or is one of them."],
  ["like", "The text fits a pattern of % and _."],
  ["ilike", "The text fits a pattern of % and _, in any case."],
  ["match", "The text has these words."],
  ["includes", "The array has this member."],
  ["as", "Names the column."],
  ["interval", "A length of time, such as interval 7 day."],
  ["case when", "One of several values, by conditions."],
  ["true", "The boolean."],
  ["false", "The boolean."],
  ["null", "No value."],
]);

export const AFTER_SORT = words("keyword", [
  ["asc", "The smallest first."],
  ["desc", "The largest first."],
]);

export const FUNCTIONS = words("function", [...AGGREGATES, ...ROW_FUNCTIONS]);

/** What kind of object the argument of a source names. */
export type SourceKind = "project" | "experiment" | "dataset" | "organization" | "other";

export interface Source {
  readonly name: string;
  readonly about: string;
  readonly takes: SourceKind;
}

export const SOURCES: readonly Source[] = [
  { name: "project_logs", about: "The spans of a project's logs.", takes: "project" },
  { name: "experiment", about: "The spans of an experiment.", takes: "experiment" },
  { name: "dataset", about: "The rows of a dataset.", takes: "dataset" },
  { name: "project_prompts", about: "The prompts of a project.", takes: "project" },
  { name: "project_functions", about: "The functions of a project.", takes: "project" },
  { name: "org_prompts", about: "The prompts of an organization.", takes: "organization" },
  { name: "org_functions", about: "The functions of an organization.", takes: "organization" },
  { name: "playground_logs", about: "The spans of a playground.", takes: "other" },
  { name: "prompt", about: "A prompt.", takes: "other" },
  { name: "function", about: "A function.", takes: "other" },
];

const lower = (list: readonly { readonly name: string }[]): readonly string[] =>
  list.flatMap(({ name }) => name.toLowerCase().split(" "));

export const CLAUSE_NAMES: ReadonlySet<string> = new Set([
  ...lower(CLAUSES),
  "where",
  "final_dimensions",
  "final_measures",
  "weighted_scores",
  "custom_columns",
]);

export const SQL_WORDS: ReadonlySet<string> = new Set([
  ...lower(SQL_CLAUSES),
  "with",
  "distinct",
  "settings",
  "for",
  "any",
  "nulls",
  "percent",
  "rows",
  "repeatable",
  "bernoulli",
]);

export const WORDS: ReadonlySet<string> = new Set([
  ...lower(OPERATORS),
  ...lower(AFTER_SORT),
  ...lower(SHAPES),
  "then",
  "else",
  "end",
  "contains",
  "seed",
  "cast",
]);

export const FUNCTION_NAMES: ReadonlySet<string> = new Set(lower(FUNCTIONS));
export const SOURCE_NAMES: ReadonlySet<string> = new Set([...lower(SOURCES), "prompt_session", "project_dataset"]);
