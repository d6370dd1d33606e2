// The words of the query language that completion offers, with what they do.

/** Functions of one value or row. */
export const FUNCTIONS: readonly (readonly [string, string])[] = [
  ["search", "rows with these words"],
  ["any_span", "a span of the trace fulfils this"],
  ["filter_spans", "only spans that fulfil this"],
  ["lower", "in lower case"],
  ["upper", "in upper case"],
  ["len", "how long"],
  ["starts_with", "whether a text starts with another"],
  ["ends_with", "whether a text ends with another"],
  ["substring", "a part of a text"],
  ["coalesce", "the first that is not null"],
  ["json_extract", "a member of JSON text"],
  ["object_keys", "the keys of an object"],
  ["typeof", "the JSON type"],
  ["round", "rounded"],
  ["abs", "without its sign"],
  ["now", "the present"],
  ["date_trunc", "the start of a unit of time"],
  ["minute", "the start of the minute"],
  ["hour", "the start of the hour"],
  ["day", "the start of the day"],
  ["week", "the start of the week"],
  ["month", "the start of the month"],
  ["to_number", "as a number"],
  ["to_string", "as text"],
  ["to_datetime", "as a time"],
  ["estimated_cost", "the cost in dollars"],
];

/** Functions over the rows of a group. */
export const AGGREGATES: readonly (readonly [string, string])[] = [
  ["count", "how many"],
  ["count_distinct", "how many different ones"],
  ["sum", "the sum"],
  ["avg", "the mean"],
  ["min", "the smallest"],
  ["max", "the largest"],
  ["percentile", "a percentile"],
  ["any_value", "one of the values"],
];

export const CLAUSES = [
  "select",
  "dimensions",
  "measures",
  "infer",
  "from",
  "filter",
  "unpivot",
  "pivot",
  "sort",
  "limit",
  "sample",
  "cursor",
  "preview_length",
  "final_filter",
] as const;

export const SQL_WORDS = ["SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT"] as const;
