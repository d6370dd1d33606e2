// The requests of the comparison.
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { compareExperiments, type Compared, type ComparisonRequest, type Pair } from "../../api/comparison";
import { call } from "../../api/client";
import {
  changeComparisonSettings,
  findExperiment,
  readComparisonSettings,
  readExperiments,
  readRowPlace,
  type Experiment,
  type RowPlace,
} from "../../api/experiments";
import { isRecord, record, text } from "../../api/narrow";
import { cache, projectQuery } from "../../api/queries";
import { readStatistics } from "../../api/statistics";
import { list } from "../../btql";
import { pairIdsOf } from "./rows";

export const PAGE = 100;
const PREVIEW = 400;
/** Where values of an open pair are cut: above it, texts would make the page slow. */
export const WHOLE = 1 << 20;

/** The experiments of an address. */
export interface Resolved {
  readonly main: Experiment | null;
  /** Those it is compared with; the first is the base. */
  readonly others: readonly Experiment[];
  /** What of the address names no experiment. */
  readonly unknown: readonly string[];
}

interface Named {
  readonly name: string;
  readonly compared: readonly string[];
  readonly isAlone: boolean;
}

async function resolve(organization: string, projectId: string, named: Named, signal: AbortSignal): Promise<Resolved> {
  const find = (name: string): Promise<Experiment | null> => findExperiment(organization, projectId, name, signal);
  const [main, ...found] = await Promise.all([find(named.name), ...named.compared.map(find)]);
  const unknown = named.compared.filter((_, index) => found[index] === null);
  const others = new Map(found.flatMap((one) => (one === null || one.id === main?.id ? [] : [[one.id, one] as const])));
  const known = { main: main ?? null, unknown, others: [...others.values()] };
  if (main === null || main === undefined || named.compared.length > 0 || named.isAlone) return known;
  const settings = await readComparisonSettings(organization, projectId, signal).catch(() => null);
  const baseId = [main.baseId, settings?.baseline ?? null].find((id) => id !== null && id !== main.id) ?? null;
  const base = baseId === null ? null : await find(baseId);
  return { ...known, others: base === null ? [] : [base] };
}

export const resolvedQuery = (organization: string, projectId: string, named: Named) =>
  queryOptions({
    queryKey: ["experiments by name", organization, projectId, named.name, named.compared, named.isAlone],
    queryFn: ({ signal }) => resolve(organization, projectId, named, signal),
    placeholderData: keepPreviousData,
  });

/** All experiments of the project, to choose others from. */
export const choicesQuery = (organization: string, projectId: string) =>
  queryOptions({
    queryKey: ["experiments", organization, projectId],
    queryFn: ({ signal }) => readExperiments(organization, projectId, signal),
  });

export const comparedQuery = (organization: string, request: ComparisonRequest) =>
  infiniteQueryOptions({
    queryKey: ["comparison", organization, request],
    queryFn: ({ pageParam, signal }): Promise<Compared> =>
      compareExperiments(organization, request, { limit: PAGE, cursor: pageParam, preview: PREVIEW }, signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.cursor,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    refetchOnWindowFocus: false,
  });

/** The statistics of an experiment against a base, read again whenever comparisons are. */
export const statisticsQuery = (organization: string, id: string, base: string | null) =>
  queryOptions({
    queryKey: ["comparison", organization, "statistics", id, base],
    queryFn: ({ signal }) => readStatistics(organization, id, base, signal),
    staleTime: 30_000,
    refetchOnWindowFocus: false,
  });

const FIND_PAGE = 1000;

/** Looks for a pair, page by page. */
async function findPair(organization: string, request: ComparisonRequest, isSought: (pair: Pair) => boolean, signal?: AbortSignal) {
  const light = { ...request, filter: "", group: "", only: "" as const, sort: "key" as const, order: "asc" as const };
  for (let cursor = ""; ; ) {
    const page = await compareExperiments(organization, light, { limit: FIND_PAGE, cursor, preview: 1 }, signal);
    const found = page.rows.find(isSought);
    if (found !== undefined || page.cursor === null) return found ?? null;
    cursor = page.cursor;
  }
}

/** Looks for the pair of a comparison key. */
export const findPairOfKey = (organization: string, request: ComparisonRequest, key: string): Promise<Pair | null> =>
  findPair(organization, request, (pair) => pair.key === key);

const rootsOf = (pair: Pair): readonly string[] => pair.cells.flatMap(({ trials }) => trials.map((trial) => trial.rootSpanId));

/** An open pair, and the span of its trace that a link named. */
export interface OpenPair {
  readonly pair: Pair;
  /** Null if the link named the root of a trace. */
  readonly span: RowPlace | null;
}

/** Looks for the pair of a row, which may be a span inside a trace. */
async function locate(organization: string, request: ComparisonRequest, row: string, signal: AbortSignal): Promise<OpenPair | null> {
  const holds = (id: string) => (pair: Pair): boolean => pairIdsOf(pair).includes(id);
  const direct = await findPair(organization, request, holds(row), signal);
  if (direct !== null) return { pair: direct, span: null };
  const places = await Promise.all(request.experiments.map((id) => readRowPlace(organization, id, row, signal)));
  const place = places.find((one) => one !== null) ?? null;
  const pair = place === null ? null : await findPair(organization, request, holds(place.root), signal);
  return pair === null ? null : { pair, span: place };
}

/** Reads the whole values of the pair that a row belongs to; null if there is no such row. */
async function readPair(
  organization: string,
  request: ComparisonRequest,
  row: string,
  known: Pair | null,
  signal: AbortSignal,
): Promise<OpenPair | null> {
  const found = known === null ? await locate(organization, request, row, signal) : { pair: known, span: null };
  if (found === null) return null;
  const filter = `root_span_id in ${list(rootsOf(found.pair))}`;
  const whole = { ...request, filter, group: "", only: "" as const };
  const page = await compareExperiments(organization, whole, { limit: PAGE, cursor: "", preview: WHOLE }, signal);
  const pair = page.rows.find((one) => one.key === found.pair.key);
  return pair === undefined ? null : { pair, span: found.span };
}

export const pairQuery = (organization: string, request: ComparisonRequest, row: string, known: Pair | null) =>
  queryOptions({
    queryKey: ["compared pair", organization, request.experiments, request.version, row],
    queryFn: ({ signal }) => readPair(organization, request, row, known, signal),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  });

/** What is wrong with an expression, in the server's words; null if nothing is. */
export async function expressionFault(organization: string, expression: string): Promise<string | null> {
  const answer = record(await call("POST", "/console/parse", { organization, body: { expression } }), "parsed expression");
  const fault = answer["error"];
  return isRecord(fault) ? text(fault, "message") : null;
}

/** Changes the expression that pairs the rows of all comparisons of the project; an empty text means the usual one. */
export async function setKey(organization: string, projectId: string, key: string): Promise<void> {
  await changeComparisonSettings(organization, projectId, { comparison_key: key === "" ? null : key });
  await cache.invalidateQueries({ queryKey: ["comparison settings", organization, projectId] });
  await cache.invalidateQueries({ queryKey: ["comparison", organization] });
}

/** Starts to read what the screen needs, while its code and the session are still on their way. */
export async function prefetchComparison(organization: string, project: string, named: Named): Promise<void> {
  const found = await cache.ensureQueryData(projectQuery(organization, project)).catch(() => null);
  if (found !== null) await cache.prefetchQuery(resolvedQuery(organization, found.id, named));
}
