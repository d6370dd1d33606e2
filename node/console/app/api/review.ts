// Calls of human review: the reviews of a row, the queues, and what a queue holds.
import type { SpanSourceKind } from "../lib/trace";
import { call } from "./client";
import { flag, isRecord, list, record, text, textOrNull, type Fields } from "./narrow";
import { columns, compared, ident, item, literal, runQuery, written, type Expression, type Item } from "./query";

/** The kinds of objects whose rows are reviewed. */
export type ReviewedKind = Exclude<SpanSourceKind, "playground_logs">;

/** The objects that a queue reads: a project's logs, or experiments. */
export interface ReviewSource {
  readonly organization: string;
  readonly kind: ReviewedKind;
  readonly ids: readonly string[];
}

/** A row that waits for reviews. */
export interface ReviewItem {
  readonly id: string;
  /** The id of the project or experiment that the row belongs to. */
  readonly objectId: string;
  readonly spanId: string;
  readonly root: string;
  readonly name: string;
}

/** What somebody gave a row, in the form in which the server keeps it. */
export interface Given {
  readonly scores: Fields;
  readonly expected: unknown;
  readonly metadata: Fields;
}

export interface ReviewBody {
  readonly scores?: Fields;
  readonly expected?: unknown;
  readonly metadata?: Fields;
  readonly comment?: string;
  readonly submitted: boolean;
}

/** What a row became by a review. */
export interface ReviewAnswer {
  readonly status: string | null;
  readonly isComplete: boolean;
}

export interface Review extends Given {
  readonly id: string;
  readonly reviewerId: string;
  readonly reviewer: string;
  readonly isSubmitted: boolean;
  readonly isMine: boolean;
  readonly comment: string;
}

export interface RowReviews {
  /** Whether others' reviews are held back until one's own is sent. */
  readonly isHidden: boolean;
  readonly status: string | null;
  readonly assignees: readonly string[];
  readonly reviews: readonly Review[];
}

/** A review of one's own, as a query finds it. */
export interface OwnReview extends Given {
  readonly root: string;
  readonly isSubmitted: boolean;
}

/** The path of the status of a row in the review list. */
export const STATUS = ["metadata", "~__bt_review_lists", "__bt_default_review_list", "status"] as const;
export const ASSIGNEES = ["metadata", "~__bt_assignments"] as const;

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});

const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];

export const fromSource = ({ kind, ids }: ReviewSource): Expression => ({
  op: "function",
  name: ident(kind),
  args: ids.map(literal),
});

const reviewPath = ({ kind }: ReviewSource, { objectId, id }: ReviewItem): string =>
  `/v1/review/${kind}/${objectId}/${encodeURIComponent(id)}`;

const givenIn = (fields: Fields): Given => ({
  scores: fieldsOf(fields["scores"]),
  expected: fields["expected"] ?? null,
  metadata: fieldsOf(fields["metadata"]),
});

function readReview(value: unknown): Review {
  const review = record(value, "review");
  const reviewerId = textOrNull(review, "reviewer_id") ?? "";
  return {
    ...givenIn(review),
    id: text(review, "id"),
    reviewerId,
    reviewer: textOrNull(review, "reviewer_name") ?? reviewerId,
    isSubmitted: flag(review, "submitted"),
    isMine: flag(review, "is_mine"),
    comment: textOrNull(review, "comment") ?? "",
  };
}

export async function readReviews(source: ReviewSource, row: ReviewItem, signal?: AbortSignal): Promise<RowReviews> {
  const { organization } = source;
  const until = signal === undefined ? {} : { signal };
  const answer = record(await call("GET", reviewPath(source, row), { organization, ...until }), "reviews");
  return {
    isHidden: flag(answer, "hidden"),
    status: textOrNull(answer, "status"),
    assignees: textsOf(answer["assignees"]),
    reviews: list(answer, "reviews").map(readReview),
  };
}

export async function writeReview(source: ReviewSource, row: ReviewItem, body: ReviewBody): Promise<ReviewAnswer> {
  const { organization } = source;
  const answer = record(await call("PUT", reviewPath(source, row), { organization, body: { ...body } }), "review");
  return { status: textOrNull(answer, "status"), isComplete: flag(answer, "complete") };
}

/** Sets the status of a row in the review list. What else is known of the row there stays. */
export async function setStatus({ organization, kind }: ReviewSource, row: ReviewItem, status: string): Promise<void> {
  const [column, lists, first, key] = STATUS;
  const event = { id: row.id, _is_merge: true, [column]: { [lists]: { [first]: { [key]: status } } } };
  await call("POST", `/v1/${kind}/${row.objectId}/insert`, { organization, body: { events: [event] } });
}

const itemOf = (source: ReviewSource, row: Fields): ReviewItem => ({
  id: textOrNull(row, "id") ?? "",
  objectId: textOrNull(row, "object_id") ?? source.ids[0] ?? "",
  spanId: textOrNull(row, "span_id") ?? "",
  root: textOrNull(row, "root_span_id") ?? "",
  name: textOrNull(row, "name") ?? textOrNull(row, "id") ?? "",
});

const itemColumns = ({ kind }: ReviewSource): readonly Item[] => [
  ...columns("id", "span_id", "root_span_id"),
  item("name", ident("span_attributes", "name")),
  item("object_id", ident(kind === "experiment" ? "experiment_id" : "project_id")),
];

/** Reads rows that fulfil all of some conditions, the oldest first. */
export async function readItems(
  source: ReviewSource,
  filter: readonly Expression[],
  limit: number,
  signal: AbortSignal,
): Promise<readonly ReviewItem[]> {
  if (source.ids.length === 0) return [];
  const sort = [{ expr: ident("_pagination_key"), dir: "asc" }] as const;
  const query = { select: itemColumns(source), from: fromSource(source), filter, sort, limit };
  return (await runQuery(source.organization, query, { signal })).rows.map((row) => itemOf(source, row));
}

/** Counts rows that fulfil all of some conditions, by their status; null stands for none. */
export async function countStatuses(source: ReviewSource, filter: readonly Expression[], signal: AbortSignal) {
  if (source.ids.length === 0) return new Map<string | null, number>();
  const query = {
    dimensions: [item("status", ident(...STATUS))],
    measures: [item("n", { op: "function", name: ident("count"), args: [literal(1)] })],
    from: fromSource(source),
    filter,
  };
  const { rows } = await runQuery(source.organization, query, { signal });
  return new Map(rows.map((row) => [textOrNull(row, "status"), typeof row["n"] === "number" ? row["n"] : 0]));
}

const isReview = compared("eq", ident("span_attributes", "type"), literal("review"));

/** The span that a review is of. */
const reviewed = ident("span_parents", 0);

/** Reads the newest reviews of a person, by the spans that they are of. */
export async function readOwnReviews(source: ReviewSource, userId: string, limit: number, signal: AbortSignal) {
  const own = new Map<string, OwnReview>();
  if (source.ids.length === 0) return own;
  const query = {
    select: [...columns("scores", "expected", "metadata", "root_span_id"), item("of", reviewed)],
    from: fromSource(source),
    filter: [isReview, compared("eq", ident("metadata", "reviewer_id"), literal(userId))],
    limit,
  };
  for (const row of (await runQuery(source.organization, query, { signal })).rows) {
    const given = givenIn(row);
    const of = textOrNull(row, "of") ?? "";
    const review = { ...given, root: textOrNull(row, "root_span_id") ?? "", isSubmitted: flag(given.metadata, "submitted") };
    if (!own.has(of)) own.set(of, review);
  }
  return own;
}

/** What a reviewer gave a span. */
export interface Rating extends Given {
  readonly of: string;
  readonly reviewerId: string;
}

/** Reads everybody's reviews of some spans that are sent; of all spans for null. */
export async function readRatings(source: ReviewSource, spans: readonly string[] | null, limit: number, signal: AbortSignal) {
  if (spans?.length === 0 || source.ids.length === 0) return [];
  const query = {
    select: [...columns("scores", "expected", "metadata"), item("of", reviewed)],
    from: fromSource(source),
    filter: [isReview, written("metadata.submitted"), ...(spans === null ? [] : [compared("in", reviewed, literal(spans))])],
    limit,
  };
  const { rows } = await runQuery(source.organization, query, { signal });
  return rows.map((row): Rating => {
    const given = givenIn(row);
    return { ...given, of: textOrNull(row, "of") ?? "", reviewerId: textOrNull(given.metadata, "reviewer_id") ?? "" };
  });
}

/** What a reviewer reads of a row: neither scores nor comments, which others may have given. */
const CONTENTS = columns("created", "span_attributes", "input", "output", "expected", "error", "metadata", "tags", "metrics");

export interface ReviewContents {
  readonly item: ReviewItem;
  readonly row: Fields;
}

/** Reads the contents of a row; null if it is gone. */
export async function readContents(source: ReviewSource, id: string, signal: AbortSignal): Promise<ReviewContents | null> {
  const query = {
    select: [...itemColumns(source), ...CONTENTS],
    from: fromSource(source),
    filter: [compared("eq", ident("id"), literal(id))],
    limit: 1,
  };
  const [row] = (await runQuery(source.organization, query, { signal, isExact: true })).rows;
  return row === undefined ? null : { item: itemOf(source, row), row };
}

/** A span of the trace around a row. */
export interface Neighbour {
  readonly id: string;
  readonly name: string;
  readonly type: string;
}

/** Reads the first spans of a trace besides reviews. */
export async function readNeighbours(source: ReviewSource, root: string, limit: number, signal: AbortSignal) {
  const query = {
    select: [...itemColumns(source), item("type", ident("span_attributes", "type"))],
    from: fromSource(source),
    filter: [compared("eq", ident("root_span_id"), literal(root))],
    sort: [{ expr: ident("_pagination_key"), dir: "asc" }] as const,
    limit,
  };
  return (await runQuery(source.organization, query, { signal })).rows
    .map((row): Neighbour => ({ id: text(row, "id"), name: textOrNull(row, "name") ?? "", type: textOrNull(row, "type") ?? "" }))
    .filter(({ type }) => type !== "review");
}
