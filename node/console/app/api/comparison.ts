// Comparisons of experiments: the server pairs their rows by the comparison key of the project.
import { call } from "./client";
import { count, flag, isRecord, list, numberOrNull, record, text, textOrNull, type Fields } from "./narrow";
import type { ExportOptions, QueryObject } from "./query";

export const KINDS = ["up", "down", "same", "new", "missing", "errors"] as const;

/** What a pair is, of the experiment looked at against the base. */
export type Kind = (typeof KINDS)[number];

export type ComparisonSort = "delta" | "score" | "key";

export interface ComparisonRequest {
  /** From 1 to 8 ids; the first is the one looked at. */
  readonly experiments: readonly string[];
  /** One of them; empty for none. */
  readonly base: string;
  readonly filter: string;
  /** A path whose values make groups; empty for none. */
  readonly group: string;
  /** The score, or `metrics.` and the name of a metric, that kinds and order are about; empty for the first score. */
  readonly score: string;
  readonly only: Kind | "";
  readonly sort: ComparisonSort;
  readonly order: "asc" | "desc";
  readonly version: string;
}

export interface ScoreSummary {
  readonly mean: number | null;
  readonly count: number;
  readonly deviation: number | null;
}

export interface MetricSummary {
  readonly mean: number | null;
  readonly count: number;
  readonly p50: number | null;
  readonly p95: number | null;
}

export type Named<Value> = Readonly<Record<string, Value>>;

export interface ComparedExperiment {
  readonly id: string;
  readonly name: string;
  readonly rows: number;
  readonly errors: number;
  readonly scores: Named<ScoreSummary>;
  readonly metrics: Named<MetricSummary>;
  /** Counts of 0, and of each tenth up to 1. */
  readonly distributions: Named<readonly number[]>;
}

/** How a score or a metric changed over all pairs. */
export interface Change {
  readonly pairs: number;
  readonly up: number;
  readonly down: number;
  readonly same: number;
  readonly delta: number | null;
  /** The interval of the delta with a confidence of 95 %. */
  readonly interval: readonly [number, number] | null;
}

export interface Comparison {
  readonly experiment: string;
  readonly scores: Named<Change>;
  readonly metrics: Named<Change>;
  readonly added: number;
  readonly missing: number;
}

export interface GroupOfRows {
  readonly value: unknown;
  readonly experiments: readonly { readonly id: string; readonly rows: number; readonly scores: Named<ScoreSummary> }[];
}

export interface Trial {
  readonly id: string;
  readonly spanId: string;
  readonly rootSpanId: string;
  readonly created: string | null;
  readonly output: unknown;
  readonly error: unknown;
  readonly metadata: unknown;
  readonly scores: Named<number>;
  readonly metrics: Named<number>;
}

/** The trials of one key in one experiment, with the means of what they have. Names of metrics start with `metrics.`. */
export interface Cell {
  readonly experiment: string;
  readonly trials: readonly Trial[];
  readonly scores: Named<number>;
  readonly deltas: Named<number>;
}

export interface Pair {
  readonly key: string;
  readonly input: unknown;
  readonly expected: unknown;
  readonly cells: readonly Cell[];
}

export interface Compared {
  readonly key: string;
  readonly base: string | null;
  readonly experiments: readonly ComparedExperiment[];
  readonly comparisons: readonly Comparison[];
  readonly groups: readonly GroupOfRows[];
  readonly rows: readonly Pair[];
  readonly total: number;
  readonly cursor: string | null;
  readonly isTruncated: boolean;
}

/** Reads an object member by member; anything but an object is empty. */
function named<Value>(value: unknown, read: (value: unknown) => Value): Named<Value> {
  const fields = isRecord(value) ? value : {};
  return Object.fromEntries(Object.entries(fields).map(([name, member]) => [name, read(member)]));
}

function numbers(value: unknown): Named<number> {
  const fields = isRecord(value) ? value : {};
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, member]): readonly (readonly [string, number])[] => {
      const number = numberOrNull(member);
      return number === null ? [] : [[name, number]];
    }),
  );
}

function readScore(value: unknown): ScoreSummary {
  const score = record(value, "score");
  return { mean: numberOrNull(score["mean"]), count: count(score, "count"), deviation: numberOrNull(score["deviation"]) };
}

function readMetric(value: unknown): MetricSummary {
  const metric = record(value, "metric");
  const [mean, p50, p95] = [metric["mean"], metric["p50"], metric["p95"]].map(numberOrNull);
  return { mean: mean ?? null, count: count(metric, "count"), p50: p50 ?? null, p95: p95 ?? null };
}

const readCounts = (value: unknown): readonly number[] =>
  Array.isArray(value) ? value.map((one) => numberOrNull(one) ?? 0) : [];

function readExperiment(value: unknown): ComparedExperiment {
  const experiment = record(value, "experiment");
  return {
    id: text(experiment, "id"),
    name: textOrNull(experiment, "name") ?? "",
    rows: count(experiment, "rows"),
    errors: count(experiment, "errors"),
    scores: named(experiment["scores"], readScore),
    metrics: named(experiment["metrics"], readMetric),
    distributions: named(experiment["distributions"], readCounts),
  };
}

function readChange(value: unknown): Change {
  const change = record(value, "change");
  const interval = Array.isArray(change["interval"]) ? change["interval"].map(numberOrNull) : [];
  const [low, high] = interval;
  return {
    pairs: count(change, "pairs"),
    up: numberOrNull(change["up"]) ?? 0,
    down: numberOrNull(change["down"]) ?? 0,
    same: numberOrNull(change["same"]) ?? 0,
    delta: numberOrNull(change["delta"]),
    interval: low == null || high == null ? null : [low, high],
  };
}

function readComparison(value: unknown): Comparison {
  const comparison = record(value, "comparison");
  return {
    experiment: text(comparison, "experiment"),
    scores: named(comparison["scores"], readChange),
    metrics: named(comparison["metrics"], readChange),
    added: count(comparison, "new"),
    missing: count(comparison, "missing"),
  };
}

function readGroup(value: unknown): GroupOfRows {
  const group = record(value, "group");
  const experiments = list(group, "experiments").map((one) => {
    const experiment = record(one, "experiment");
    return { id: text(experiment, "id"), rows: count(experiment, "rows"), scores: named(experiment["scores"], readScore) };
  });
  return { value: group["value"] ?? null, experiments };
}

function readTrial(value: unknown): Trial {
  const trial = record(value, "trial");
  const root = text(trial, "root_span_id");
  return {
    id: textOrNull(trial, "id") ?? root,
    spanId: textOrNull(trial, "span_id") ?? root,
    rootSpanId: root,
    created: textOrNull(trial, "created"),
    output: trial["output"] ?? null,
    error: trial["error"] ?? null,
    metadata: trial["metadata"] ?? null,
    scores: numbers(trial["scores"]),
    metrics: numbers(trial["metrics"]),
  };
}

function readPair(value: unknown): Pair {
  const pair = record(value, "pair");
  const cells = list(pair, "cells").map((one): Cell => {
    const cell = record(one, "cell");
    // the server has the newest trial first
    const trials = list(cell, "trials").map(readTrial).toReversed();
    return { experiment: text(cell, "experiment"), trials, scores: numbers(cell["scores"]), deltas: numbers(cell["deltas"]) };
  });
  return { key: text(pair, "key"), input: pair["input"] ?? null, expected: pair["expected"] ?? null, cells };
}

export function readCompared(value: unknown): Compared {
  const answer = record(value, "comparison");
  return {
    key: text(answer, "key"),
    base: textOrNull(answer, "base"),
    experiments: list(answer, "experiments").map(readExperiment),
    comparisons: list(answer, "comparisons").map(readComparison),
    groups: Array.isArray(answer["groups"]) ? answer["groups"].map(readGroup) : [],
    rows: list(answer, "rows").map(readPair),
    total: count(answer, "total"),
    cursor: textOrNull(answer, "cursor"),
    isTruncated: flag(answer, "truncated"),
  };
}

export interface ComparisonPage {
  readonly limit: number;
  /** Where the page starts; empty for the first. */
  readonly cursor: string;
  /** Where values are cut. */
  readonly preview: number;
}

/** The body of a request. What is empty is left to the server. */
function bodyOf(request: ComparisonRequest, page: ComparisonPage): Fields {
  const { experiments, base, filter, group, score, only, version } = request;
  const texts = { base, filter, group, score, only, version, cursor: page.cursor };
  const filled = Object.entries(texts).filter(([, value]) => value.trim() !== "");
  const { sort, order } = request;
  return { experiments, sort, order, limit: page.limit, preview_length: page.preview, ...Object.fromEntries(filled) };
}

/** Compares experiments, and returns a page of the pairs. */
export async function compareExperiments(
  organization: string,
  request: ComparisonRequest,
  page: ComparisonPage,
  signal?: AbortSignal,
): Promise<Compared> {
  const until = signal === undefined ? {} : { signal };
  return readCompared(await call("POST", "/console/compare", { organization, body: bodyOf(request, page), ...until }));
}

/** Prepares a file of all rows of a query and returns its address, which is good once and for a minute. */
export async function prepareRows(organization: string, query: QueryObject, options: ExportOptions): Promise<string> {
  const { fmt, filename, version = "" } = options;
  const body = { query, fmt, filename, disable_limit: true, ...(version === "" ? {} : { version }) };
  return text(record(await call("POST", "/console/download", { organization, body }), "download"), "url");
}
