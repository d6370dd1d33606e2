// Reads the spans of a trace: first what the tree needs of all of them, then the rest of those that are looked at.
import type { SpanSource } from "../lib/trace";
import { isRecord, textOrNull, type Fields } from "./narrow";
import {
  called,
  columns,
  compared,
  ident,
  item,
  literal,
  runQuery,
  sourceOf,
  written,
  type Expression,
  type Item,
} from "./query";

/** What the tree and the timeline show of a span. Times are in seconds since the epoch. */
export interface SpanHead {
  readonly id: string;
  readonly spanId: string;
  readonly parents: readonly string[];
  readonly isRoot: boolean;
  readonly name: string;
  readonly type: string;
  readonly start: number | null;
  readonly end: number | null;
  readonly created: string;
  readonly tokens: number | null;
  readonly cost: number | null;
  readonly firstToken: number | null;
  readonly model: string;
  readonly scores: readonly (readonly [name: string, value: number | null])[];
  readonly tags: readonly string[];
  readonly hasError: boolean;
  readonly transaction: string;
}

/** A place from which spans are read. */
export interface SpanPlace {
  readonly organization: string;
  readonly source: SpanSource;
  readonly root: string;
  /** The transaction as of which is read; empty for the newest. */
  readonly version: string;
}

const PAGE = 10_000;
const PREVIEW_LETTERS = 200;

const HEAD: readonly Item[] = [
  ...columns("id", "span_id", "span_parents", "is_root", "created", "span_attributes", "metrics", "scores", "tags"),
  item("model", ident("metadata", "model")),
  item("has_error", written("error IS NOT NULL")),
  item("cost", called("estimated_cost")),
  item("_xact_id", ident("_xact_id")),
];

const numberIn = (fields: unknown, key: string): number | null => {
  const value = isRecord(fields) ? fields[key] : null;
  return typeof value === "number" && Number.isFinite(value) ? value : null;
};

const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];

/** Reads the row of a span, as far as the tree needs it. */
export function readHead(row: Fields): SpanHead {
  const { metrics, scores, span_attributes: attributes } = row;
  const start = numberIn(metrics, "start");
  const transaction = row["_xact_id"];
  return {
    id: textOrNull(row, "id") ?? "",
    spanId: textOrNull(row, "span_id") ?? "",
    parents: textsIn(row["span_parents"]),
    isRoot: row["is_root"] === true,
    name: (isRecord(attributes) ? textOrNull(attributes, "name") : null) ?? "",
    type: (isRecord(attributes) ? textOrNull(attributes, "type") : null) ?? "",
    start,
    end: numberIn(metrics, "end"),
    created: textOrNull(row, "created") ?? "",
    tokens: numberIn(metrics, "tokens") ?? sum(numberIn(metrics, "prompt_tokens"), numberIn(metrics, "completion_tokens")),
    cost: typeof row["cost"] === "number" ? row["cost"] : null,
    firstToken: numberIn(metrics, "time_to_first_token"),
    model: textOrNull(row, "model") ?? "",
    scores: isRecord(scores) ? Object.keys(scores).map((name) => [name, numberIn(scores, name)]) : [],
    tags: textsIn(row["tags"]),
    hasError: row["has_error"] === true,
    transaction: typeof transaction === "string" ? transaction : String(transaction ?? ""),
  };
}

const sum = (one: number | null, other: number | null): number | null =>
  one === null && other === null ? null : (one ?? 0) + (other ?? 0);

const ofTrace = (place: SpanPlace): Expression => compared("eq", ident("root_span_id"), literal(place.root));

interface ReadOptions {
  readonly signal?: AbortSignal;
}

const optionsOf = (place: SpanPlace, { signal }: ReadOptions) => ({
  version: place.version,
  ...(signal === undefined ? {} : { signal }),
});

/** Reads all spans of a trace, without their contents. */
export async function readSpans(place: SpanPlace, options: ReadOptions = {}): Promise<readonly SpanHead[]> {
  const spans: SpanHead[] = [];
  let cursor: string | null = null;
  do {
    const page = await runQuery(
      place.organization,
      {
        select: HEAD,
        from: sourceOf(place.source.kind, place.source.id),
        filter: [ofTrace(place)],
        sort: [{ expr: ident("_pagination_key"), dir: "asc" }],
        limit: PAGE,
        ...(cursor === null ? {} : { cursor }),
      },
      optionsOf(place, options),
    );
    for (const row of page.rows) spans.push(readHead(row));
    cursor = page.rows.length < PAGE ? null : page.cursor;
  } while (cursor !== null);
  return spans;
}

/** Reads the spans of a trace that were written after a transaction. */
export async function readSpansSince(
  place: SpanPlace,
  transaction: string,
  options: ReadOptions = {},
): Promise<readonly SpanHead[]> {
  const page = await runQuery(
    place.organization,
    {
      select: HEAD,
      from: sourceOf(place.source.kind, place.source.id),
      filter: [ofTrace(place), compared("gt", ident("_xact_id"), literal(transaction))],
      limit: PAGE,
    },
    optionsOf(place, options),
  );
  return page.rows.map(readHead);
}

/** Reads one span with all that it has; null if there is none. */
export async function readSpan(place: SpanPlace, id: string, options: ReadOptions = {}): Promise<Fields | null> {
  const page = await runQuery(
    place.organization,
    {
      select: [{ op: "star" }],
      from: sourceOf(place.source.kind, place.source.id),
      filter: [ofTrace(place), compared("eq", ident("id"), literal(id))],
      limit: 1,
    },
    { ...optionsOf(place, options), isExact: true },
  );
  return page.rows[0] ?? null;
}

/** Where outputs have the text of an answer, or the name of the tool that is called instead. */
const ANSWERS = [
  ["output", "choices", 0, "message", "content"],
  ["output", 0, "message", "content"],
  ["output", "messages", -1, "content"],
  ["output", -1, "content", 0, "text"],
  ["output", -1, "content"],
  ["output", "content", 0, "text"],
  ["output", "content"],
  ["output", "choices", 0, "message", "tool_calls", 0, "function", "name"],
  ["output", 0, "message", "tool_calls", 0, "function", "name"],
] as const;

const answer = called(
  "left",
  called("to_string", called("coalesce", ...ANSWERS.map((path) => ident(...path)))),
  literal(PREVIEW_LETTERS),
);

const lineOf = (value: unknown): string =>
  (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).replace(/\s+/g, " ").slice(0, PREVIEW_LETTERS);

/** What an error says, if it is an object as SDKs send it. */
const saidBy = (error: unknown): unknown =>
  isRecord(error) && typeof error["message"] === "string" && error["message"] !== "" ? error["message"] : error;

/** Reads a line of the contents of some spans, by their ids: of the error, else of the output, else of the input. */
export async function readPreviews(
  place: SpanPlace,
  ids: readonly string[],
  options: ReadOptions = {},
): Promise<ReadonlyMap<string, string>> {
  const page = await runQuery(
    place.organization,
    {
      select: [...columns("id", "input", "output", "error"), item("answer", answer)],
      from: sourceOf(place.source.kind, place.source.id),
      filter: [ofTrace(place), compared("in", ident("id"), literal([...ids]))],
      limit: ids.length,
      preview_length: PREVIEW_LETTERS,
    },
    optionsOf(place, options),
  );
  return new Map(
    page.rows.map((row) => [
      textOrNull(row, "id") ?? "",
      lineOf(saidBy(row["error"]) ?? row["answer"] ?? row["output"] ?? row["input"] ?? ""),
    ]),
  );
}

/** Finds the spans of a trace whose contents have some words, and returns their ids. */
export async function findSpans(
  place: SpanPlace,
  words: string,
  options: ReadOptions = {},
): Promise<ReadonlySet<string>> {
  const page = await runQuery(
    place.organization,
    {
      select: columns("id"),
      from: sourceOf(place.source.kind, place.source.id),
      filter: [ofTrace(place), called("search", literal(words))],
      limit: PAGE,
    },
    optionsOf(place, options),
  );
  return new Set(page.rows.map((row) => textOrNull(row, "id") ?? ""));
}
