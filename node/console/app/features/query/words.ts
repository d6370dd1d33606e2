// The words of the query language: clauses, keywords, functions and sources.
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

export const FUNCTIONS = words("function", [
  ["count", "How many values are not null.", "count(1)"],
  ["count_distinct", "How many different values there are."],
  ["sum", "The sum of numbers."],
  ["avg", "The mean of numbers."],
  ["min", "The smallest value."],
  ["max", "The largest value."],
  ["percentile", "A percentile: percentile(metrics.duration, 0.95)."],
  ["median", "The middle value."],
  ["stddev", "The standard deviation."],
  ["any_value", "Any value that is not null."],
  ["first", "The value of the first row."],
  ["last", "The value of the last row."],
  ["array_agg", "All values as an array."],
  ["string_agg", "All values as one text."],
  ["date_trunc", "The start of the period that a time lies in: date_trunc('hour', created)."],
  ["now", "The present, the same for the whole query.", "now()"],
  ["current_date", "The start of today."],
  ["second", "The start of the second."],
  ["minute", "The start of the minute."],
  ["hour", "The start of the hour."],
  ["day", "The start of the day."],
  ["week", "The start of the week, a Monday."],
  ["month", "The start of the month."],
  ["year", "The start of the year."],
  ["date_part", "A part of a time as a number: date_part('hour', created)."],
  ["to_unixtime", "A time as seconds since 1970."],
  ["search", "Whether the large fields have these words: search('refund')."],
  ["any_span", "Whether a span of the trace fulfils a condition."],
  ["filter_spans", "Returns of the selected traces the spans that fulfil a condition."],
  ["estimated_cost", "The cost in dollars, from tokens and prices.", "estimated_cost()"],
  ["lower", "The text in small letters."],
  ["upper", "The text in capital letters."],
  ["concat", "Texts joined."],
  ["length", "How many characters a text has."],
  ["substring", "A part of a text: substring(text, start, count)."],
  ["trim", "The text without spaces around it."],
  ["replace", "The text with a part replaced."],
  ["split_part", "A part of a text between separators."],
  ["starts_with", "Whether a text starts with another."],
  ["ends_with", "Whether a text ends with another."],
  ["levenshtein", "How many edits lie between two texts."],
  ["similarity", "How alike two texts are, from 0 to 1."],
  ["len", "How many members an array or an object has."],
  ["contains", "Whether an array has a member."],
  ["json_extract", "A member of a text that is JSON, by its key."],
  ["object_keys", "The keys of an object."],
  ["to_json", "The JSON of the value."],
  ["typeof", "The kind of a value."],
  ["coalesce", "The first value that is not null."],
  ["nullif", "Null if two values are equal."],
  ["least", "The smallest of several values."],
  ["greatest", "The largest of several values."],
  ["round", "A number rounded: round(x, 2)."],
  ["abs", "A number without its sign."],
  ["floor", "A number rounded down."],
  ["ceil", "A number rounded up."],
  ["sqrt", "The square root."],
  ["ln", "The natural logarithm."],
  ["log10", "The logarithm to base 10."],
  ["pow", "A power."],
  ["to_string", "The value as text."],
  ["to_number", "The value as a number."],
  ["to_integer", "The value as a whole number."],
  ["to_boolean", "The value as true or false."],
  ["to_datetime", "The text as a time."],
  ["to_date", "The text as a day."],
]);

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
