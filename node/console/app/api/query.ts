// Runs queries of the query language, and builds the form in which they are sent: texts of people stay expressions of
// their own and are never joined to a longer text.
import type { SpanSourceKind } from "../lib/trace";
import { call } from "./client";
import { ApiError, withoutTail } from "../lib/errors";
import { isRecord, list, record, text, textOrNull, type Fields } from "./narrow";

/** An expression as the server takes it: a node of its syntax tree, or text that it parses by itself. */
export type Expression = { readonly op: string; readonly [field: string]: unknown } | { readonly btql: string };

export type Literal = string | number | boolean | null | readonly Literal[];

/** An expression of an output column. */
export interface Item {
  readonly expr: Expression;
  readonly alias: string;
}

export type Shape = "spans" | "traces" | "summary";

/** A query in its JSON form. Absent keys have the server's defaults. */
export interface QueryObject {
  readonly select?: readonly (Item | Expression)[];
  readonly dimensions?: readonly Item[];
  readonly measures?: readonly Item[];
  readonly infer?: readonly Expression[];
  readonly pivot?: readonly Item[];
  readonly unpivot?: readonly { readonly expr: Expression; readonly alias: string | readonly [string, string] }[];
  readonly from: Expression;
  /** Conditions that must all hold. */
  readonly filter?: readonly Expression[];
  readonly sort?: readonly { readonly expr: Expression; readonly dir: "asc" | "desc" }[];
  readonly limit?: number;
  readonly cursor?: string;
  readonly preview_length?: number;
  readonly inference_budget?: number;
}

/** A text of the query language as an expression. */
export const written = (btql: string): Expression => ({ btql });

export const literal = (value: Literal): Expression => ({ op: "literal", value });

/** A column, or a path below it. */
export const ident = (...name: readonly (string | number)[]): Expression => ({ op: "ident", name });

export const compared = (
  op: "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "in" | "match",
  left: Expression,
  right: Expression,
): Expression => ({ op, left, right });

export const called = (name: string, ...args: readonly Expression[]): Expression => ({
  op: "function",
  name: ident(name),
  args,
});

export const item = (alias: string, expr: Expression): Item => ({ alias, expr });

/** Columns that keep their own names. */
export const columns = (...names: readonly string[]): readonly Item[] => names.map((name) => item(name, ident(name)));

/** What a query reads: the rows of an object, in a shape. */
export const sourceOf = (kind: SpanSourceKind | "dataset", id: string, shape: Shape = "spans"): Expression => ({
  op: "function",
  name: ident(kind),
  args: [literal(id)],
  ...(shape === "spans" ? {} : { shape }),
});

export interface RunOptions {
  readonly signal?: AbortSignal;
  /** The transaction as of which is read; absent or empty for the newest. */
  readonly version?: string;
  /** Minutes between UTC and the zone in which times are truncated, as `Date.getTimezoneOffset` gives them. */
  readonly tzOffset?: number;
  readonly auditLog?: boolean;
  readonly includePlan?: boolean;
  /** Whether numbers that JavaScript cannot hold keep their digits, as `Exact`. */
  readonly isExact?: boolean;
}

export interface Warning {
  readonly code: string;
  readonly message: string;
}

export interface Page {
  readonly rows: readonly Fields[];
  /** The names of the columns, in order. */
  readonly columns: readonly string[];
  /** The schema of each column, as JSON Schema. */
  readonly schema: Fields;
  /** Where the next page starts; null after the last, and where the sort allows no pages. */
  readonly cursor: string | null;
  /** The newest transaction that the read has seen. */
  readonly transaction: string | null;
  readonly warnings: readonly Warning[];
  readonly plan: string | null;
}

const readWarning = (value: unknown): Warning => {
  const warning = record(value, "warning");
  return { code: text(warning, "code"), message: text(warning, "message") };
};

function propertiesOf(answer: Fields): Fields {
  const schema = answer["schema"];
  const items = isRecord(schema) ? schema["items"] : null;
  const properties = isRecord(items) ? items["properties"] : null;
  return isRecord(properties) ? properties : {};
}

export function readPage(value: unknown): Page {
  const answer = record(value, "query result");
  const properties = propertiesOf(answer);
  const freshness = answer["freshness_state"];
  const warnings = answer["warnings"];
  return {
    rows: list(answer, "data").map((row) => record(row, "row")),
    columns: Object.keys(properties),
    schema: properties,
    cursor: textOrNull(answer, "cursor"),
    transaction: isRecord(freshness) ? textOrNull(freshness, "last_processed_xact_id") : null,
    warnings: Array.isArray(warnings) ? warnings.map(readWarning) : [],
    plan: textOrNull(answer, "plan"),
  };
}

/** The body of a call that runs a query. */
function bodyOf(query: string | QueryObject, options: RunOptions): Readonly<Record<string, unknown>> {
  const { version = "", tzOffset, auditLog = false, includePlan = false } = options;
  return {
    query,
    fmt: "json",
    ...(version === "" ? {} : { version }),
    ...(tzOffset === undefined ? {} : { tz_offset: tzOffset }),
    ...(auditLog ? { audit_log: true } : {}),
    ...(includePlan ? { include_plan: true } : {}),
  };
}

/** Runs a query: a text in SQL or in clauses, or the JSON form. */
export async function runQuery(
  organization: string,
  query: string | QueryObject,
  options: RunOptions = {},
): Promise<Page> {
  const signal = options.signal === undefined ? {} : { signal: options.signal };
  const exact = options.isExact === true ? { isExact: true } : {};
  return readPage(await call("POST", "/btql", { organization, body: bodyOf(query, options), ...signal, ...exact }));
}

export const EXPORT_FORMATS = ["jsonl", "csv", "parquet", "json"] as const;

export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export interface ExportOptions extends RunOptions {
  readonly fmt: ExportFormat;
  /** The name that the file gets, without its ending. */
  readonly filename: string;
}

/** Prepares a file of a query's result and returns its address, which is good once and for a minute. */
export async function prepareDownload(
  organization: string,
  query: string | QueryObject,
  options: ExportOptions,
): Promise<string> {
  // A file has all rows: without this it would end after those of one page.
  const body = { ...bodyOf(query, options), fmt: options.fmt, filename: options.filename, disable_limit: true };
  const signal = options.signal === undefined ? {} : { signal: options.signal };
  return text(record(await call("POST", "/console/download", { organization, body, ...signal }), "download"), "url");
}

/** Where in a query its fault is. */
export interface QueryFault {
  /** The part of the JSON form, such as `filter[2].btql`; empty for a query that is text. */
  readonly part: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** Reads the place out of the server's words on a query that it cannot parse; null for other failures. */
export function faultOf(error: unknown): QueryFault | null {
  if (!(error instanceof ApiError) || error.status !== 400) return null;
  const found = /^(?:([\w.[\]]+): )?line (\d+), column (\d+): ([^]*)$/.exec(withoutTail(error.message));
  if (found === null) return null;
  const [, part = "", line = "1", column = "1", message = ""] = found;
  return { part, line: Number(line), column: Number(column), message };
}
