// The requests of review.
import { queryOptions } from "@tanstack/react-query";
import { readUserNames } from "../../api/history";
import { call } from "../../api/client";
import { isRecord, textOrNull, type Fields } from "../../api/narrow";
import { cache } from "../../api/queries";
import { columns, compared, ident, item, literal, runQuery, written, type Expression } from "../../api/query";
import {
  countStatuses,
  fromSource,
  readContents,
  readItems,
  readNeighbours,
  readOwnReviews,
  readRatings,
  readReviews,
  type OwnReview,
  type ReviewItem,
  type ReviewSource,
} from "../../api/review";
import { readExperimentIds, readQueues } from "../../api/reviewQueues";
import { readGroups, readReviewSettings, readScores, type Score } from "../../api/reviewScores";
import { allOf, openOf, type Queue, type QueueRead } from "./queues";
import { isConditional, needsGroups } from "./scores";

/** The project whose rows are reviewed. */
export interface Place {
  readonly organization: string;
  readonly projectId: string;
}

/** How many rows of a queue are read, how many reviews, and how many spans of a trace. */
const ITEMS = 1000;
const OWN = 10_000;
const RATINGS = 10_000;
const SPANS = 200;
const EXPERIMENTS = 100;

const keyOf = ({ organization, projectId }: Place) => ["review", organization, projectId] as const;

export const queuesQuery = (place: Place) =>
  queryOptions({
    queryKey: [...keyOf(place), "queues"],
    queryFn: ({ signal }) => readQueues(place.organization, place.projectId, signal),
  });

export const settingsQuery = (place: Place) =>
  queryOptions({
    queryKey: [...keyOf(place), "settings"],
    queryFn: ({ signal }) => readReviewSettings(place.organization, place.projectId, signal),
  });

export const scoresQuery = (place: Place) =>
  queryOptions({
    queryKey: [...keyOf(place), "scores"],
    queryFn: ({ signal }) => readScores(place.organization, place.projectId, signal),
  });

export const groupsQuery = ({ organization }: Place) =>
  queryOptions({
    queryKey: ["groups", organization],
    queryFn: ({ signal }) => readGroups(organization, signal),
    staleTime: 60_000,
  });

export const namesQuery = ({ organization }: Place) =>
  queryOptions({
    queryKey: ["user-names", organization] as const,
    queryFn: ({ signal }) => readUserNames(organization, signal),
    staleTime: 600_000,
  });

/** The scores of the project with the groups, which are read only if a score names one. */
export const askingQuery = (place: Place) =>
  queryOptions({
    queryKey: [...keyOf(place), "scores", "groups"],
    queryFn: async () => {
      const scores = await cache.fetchQuery(scoresQuery(place));
      return { scores, groups: needsGroups(scores) ? await cache.fetchQuery(groupsQuery(place)) : [] };
    },
  });

/** The objects that a queue reads. */
export const sourceQuery = (place: Place, { kind }: Pick<Queue, "kind">) =>
  queryOptions({
    queryKey: [...keyOf(place), "source", kind],
    queryFn: async ({ signal }): Promise<ReviewSource> => {
      const { organization, projectId } = place;
      const ids = kind === "project_logs" ? [projectId] : await readExperimentIds(organization, projectId, EXPERIMENTS, signal);
      return { organization, kind, ids };
    },
    staleTime: 60_000,
  });

/** The rows of a queue that wait, and how many have each status. */
export const queueQuery = (place: Place, queue: Queue) =>
  queryOptions({
    queryKey: [...keyOf(place), "queue", queue.kind, queue.filter, queue.isRootOnly],
    queryFn: async ({ signal }): Promise<QueueRead> => {
      const source = await cache.fetchQuery(sourceQuery(place, queue));
      const [items, counts] = await Promise.all([
        readItems(source, [written(openOf(queue))], ITEMS, signal),
        countStatuses(source, [written(allOf(queue))], signal),
      ]);
      return { items, counts };
    },
  });

/** The reviews of a person, by the spans that they are of. */
export const ownQuery = (place: Place, { kind }: Pick<Queue, "kind">, userId: string) =>
  queryOptions({
    queryKey: [...keyOf(place), "own", kind, userId],
    queryFn: async ({ signal }): Promise<ReadonlyMap<string, OwnReview>> =>
      readOwnReviews(await cache.fetchQuery(sourceQuery(place, { kind })), userId, OWN, signal),
    structuralSharing: false,
  });

/** The contents of a row, or of a span of its trace. */
export const contentsQuery = (source: ReviewSource, id: string) =>
  queryOptions({
    queryKey: ["review", source.organization, "contents", source.kind, source.ids, id],
    queryFn: ({ signal }) => readContents(source, id, signal),
    staleTime: 60_000,
    structuralSharing: false,
  });

export const neighboursQuery = (source: ReviewSource, root: string) =>
  queryOptions({
    queryKey: ["review", source.organization, "spans", source.kind, source.ids, root],
    queryFn: ({ signal }) => readNeighbours(source, root, SPANS, signal),
    staleTime: 60_000,
  });

/** The reviews of a row. It is asked for only when others' reviews may be seen. */
export const reviewsQuery = (source: ReviewSource, row: ReviewItem) =>
  queryOptions({
    queryKey: ["review", source.organization, "reviews", source.kind, row.objectId, row.id],
    queryFn: ({ signal }) => readReviews(source, row, signal),
  });

export const ratingsQuery = (source: ReviewSource, spans: readonly string[] | null) =>
  queryOptions({
    queryKey: ["review", source.organization, "ratings", source.kind, source.ids, spans],
    queryFn: ({ signal }) => readRatings(source, spans, RATINGS, signal),
  });

/** Whether a value counts as true in the query language. */
const isTrue = (value: unknown): boolean => value === true || (typeof value === "number" && value !== 0);

/** Which of some expressions hold of a row. */
async function holdOf(source: ReviewSource, row: ReviewItem, clauses: readonly string[], signal: AbortSignal) {
  if (clauses.length === 0) return new Set<string>();
  const select = clauses.map((clause, index) => item(`c${index}`, written(clause)));
  const filter = [compared("eq", ident("root_span_id"), literal(row.root)), compared("eq", ident("id"), literal(row.id))];
  const [found = {}]: readonly Fields[] = (await runQuery(source.organization, { select, from: fromSource(source), filter, limit: 1 }, { signal })).rows;
  return new Set(clauses.filter((_, index) => isTrue(found[`c${index}`])));
}

/** Whether an expression holds of some span of a row's trace besides those that a condition excludes. */
async function holdsOfSome(source: ReviewSource, filter: readonly Expression[], signal: AbortSignal): Promise<boolean> {
  const query = { select: columns("id"), from: fromSource(source), filter, limit: 1 };
  return (await runQuery(source.organization, query, { signal })).rows.length > 0;
}

async function isHidden({ clauses }: Score, source: ReviewSource, row: ReviewItem, held: ReadonlySet<string>, signal: AbortSignal) {
  if (!clauses.row.every((clause) => held.has(clause))) return false;
  const ofTrace = compared("eq", ident("root_span_id"), literal(row.root));
  const isOther = compared("ne", ident("id"), literal(row.id));
  const found = await Promise.all([
    ...clauses.below.map((clause) => holdsOfSome(source, [ofTrace, isOther, written(clause)], signal)),
    ...clauses.trace.map((clause) => holdsOfSome(source, [ofTrace, written(clause)], signal)),
  ]);
  return found.every((one) => one);
}

/** The ids of the scores that are hidden for a row, because all their conditions hold. */
export const hiddenQuery = (source: ReviewSource, row: ReviewItem, scores: readonly Score[]) => {
  const conditional = scores.filter(isConditional);
  return queryOptions({
    queryKey: ["review", source.organization, "hidden", source.kind, row.objectId, row.id, conditional.map(({ id, clauses }) => [id, clauses])],
    queryFn: async ({ signal }): Promise<ReadonlySet<string>> => {
      const one = { ...source, ids: [row.objectId] };
      const held = await holdOf(one, row, [...new Set(conditional.flatMap(({ clauses }) => clauses.row))], signal);
      const hidden = await Promise.all(conditional.map((score) => isHidden(score, one, row, held, signal)));
      return new Set(conditional.filter((_, index) => hidden[index]).map(({ id }) => id));
    },
    staleTime: 60_000,
    structuralSharing: false,
  });
};

/** What is wrong with an expression, in the server's words; null if it can be read. */
export async function faultOf(organization: string, expression: string): Promise<string | null> {
  const answer = await call("POST", "/console/parse", { organization, body: { expression } });
  const fault = isRecord(answer) ? answer["error"] : null;
  return isRecord(fault) ? (textOrNull(fault, "message") ?? "") : null;
}

/** The type of a span, for people. */
export const typeOf = (row: Fields): string => {
  const attributes = row["span_attributes"];
  return isRecord(attributes) && typeof attributes["type"] === "string" ? attributes["type"] : "";
};
