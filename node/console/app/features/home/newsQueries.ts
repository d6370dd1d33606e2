// The requests of the right column of the home: what is assigned, what runs, and what has changed.
import { queryOptions } from "@tanstack/react-query";
import { call } from "../../api/client";
import { list, record, text, textOrNull, type Fields } from "../../api/narrow";
import { called, compared, ident, item, literal, runQuery, type QueryObject } from "../../api/query";
import type { Project } from "../../api/schema";
import { momentOf } from "../../lib/version";
import { createdFrom, logsOf, numberOf, tracesItems } from "./days";
import {
  ERROR_LENGTH,
  newKinds,
  periodsOf,
  rateChange,
  type Counts,
  type ErrorKind,
  type MadeObject,
  type RateChange,
} from "./news";

const AGAIN_MS = 60_000;
const DONE = ["COMPLETE", "COMPLETED", "APPROVED", "REJECTED"];
/** How many of the newest objects of a kind are looked at. */
const NEWEST = 20;
const MOST_ERRORS = 500;

const project = item("p", ident("project_id"));

export const withRows = (projects: readonly Project[]): readonly Project[] => projects.filter(({ newest }) => newest !== null);

/** How many rows wait for the review of somebody, by the ids of projects. */
export const assignedQuery = (organization: string, user: string, projects: readonly Project[]) =>
  queryOptions({
    queryKey: ["home assigned", organization, user, projects.map(({ id }) => id)],
    enabled: projects.length > 0,
    staleTime: AGAIN_MS,
    queryFn: async ({ signal }) => {
      const query = {
        dimensions: [project, item("s", ident("metadata", "~__bt_review_lists", "__bt_default_review_list", "status"))],
        measures: [item("n", called("count", literal(1)))],
        from: logsOf(projects),
        filter: [{ op: "includes", haystack: ident("metadata", "~__bt_assignments"), needle: literal(user) }],
      };
      const waiting = new Map<string, number>();
      for (const row of (await runQuery(organization, query, { signal })).rows) {
        const id = textOrNull(row, "p") ?? "";
        const isDone = DONE.includes((textOrNull(row, "s") ?? "").toUpperCase());
        if (!isDone) waiting.set(id, (waiting.get(id) ?? 0) + (numberOf(row["n"]) ?? 0));
      }
      return waiting;
    },
  });

function readMade(kind: MadeObject["kind"], value: unknown): MadeObject {
  const made = record(value, kind);
  const id = text(made, "id");
  return {
    kind,
    id,
    name: textOrNull(made, "name") ?? id,
    project: kind === "project" ? id : text(made, "project_id"),
    created: Date.parse(textOrNull(made, "created") ?? ""),
    slug: textOrNull(made, "slug"),
  };
}

async function readNewest(organization: string, kind: MadeObject["kind"], signal: AbortSignal): Promise<readonly MadeObject[]> {
  const answer = record(await call("GET", `/v1/${kind}?limit=${NEWEST}`, { organization, signal }), "answer");
  return list(answer, "objects").map((value) => readMade(kind, value));
}

const HOUR_MS = 3_600_000;
const REST_MS = 60_000;
const START_MS = 120_000;

export interface Running extends MadeObject {
  readonly rows: number;
}

/** The experiments of the last hour whose rows are still coming. */
export const runningQuery = (organization: string) =>
  queryOptions({
    queryKey: ["home running", organization],
    refetchInterval: 15_000,
    queryFn: async ({ signal }): Promise<readonly Running[]> => {
      const newest = await readNewest(organization, "experiment", signal);
      const young = newest.filter(({ created }) => Date.now() - created < HOUR_MS);
      if (young.length === 0) return [];
      const page = await runQuery(
        organization,
        {
          dimensions: [item("x", ident("experiment_id"))],
          measures: [item("n", called("count_distinct", ident("root_span_id"))), item("last", called("max", ident("_xact_id")))],
          from: { op: "function", name: ident("experiment"), args: young.map(({ id }) => literal(id)) },
        },
        { signal },
      );
      const rows = new Map(page.rows.map((row) => [textOrNull(row, "x"), row]));
      return young.flatMap((one) => {
        const row = rows.get(one.id);
        const last = row === undefined ? null : momentOf(textOrNull(row, "last") ?? "");
        const isRunning = last === null ? Date.now() - one.created < START_MS : Date.now() - last.getTime() < REST_MS;
        return isRunning ? [{ ...one, rows: numberOf(row?.["n"]) ?? 0 }] : [];
      });
    },
  });

export interface News {
  readonly since: number;
  readonly made: readonly MadeObject[];
  readonly rates: readonly RateChange[];
  readonly errors: readonly ErrorKind[];
}

function ratesOf(rows: readonly Fields[]): readonly RateChange[] {
  const counts = new Map<string, Map<boolean, Counts>>();
  for (const row of rows) {
    const id = textOrNull(row, "p") ?? "";
    const both = counts.get(id) ?? new Map<boolean, Counts>();
    counts.set(id, both.set(row["now"] === true, { traces: numberOf(row["n"]) ?? 0, failed: numberOf(row["e"]) ?? 0 }));
  }
  return [...counts].flatMap(([id, both]) => {
    const [before, since] = [both.get(false), both.get(true)];
    const change = before === undefined || since === undefined ? null : rateChange(id, before, since);
    return change === null ? [] : [change];
  });
}

async function readErrors(organization: string, logs: readonly Project[], known: number, since: number, signal: AbortSignal) {
  const query: QueryObject = {
    dimensions: [project, item("k", called("substring", called("to_string", ident("error")), literal(0), literal(ERROR_LENGTH)))],
    measures: [item("n", called("count", literal(1))), item("first", called("min", ident("created")))],
    from: logsOf(logs),
    filter: [{ op: "isnotnull", expr: ident("error") }, createdFrom(known)],
    sort: [{ expr: ident("first"), dir: "desc" }],
    limit: MOST_ERRORS,
  };
  const texts = (await runQuery(organization, query, { signal })).rows.map((row) => ({
    project: textOrNull(row, "p") ?? "",
    text: textOrNull(row, "k") ?? "",
    count: numberOf(row["n"]) ?? 0,
    first: Date.parse(textOrNull(row, "first") ?? ""),
  }));
  return newKinds(texts, since);
}

/** What has changed since the end of the last visit. Only projects with rows since then are asked about. */
export const newsQuery = (organization: string, projects: readonly Project[], visited: number) =>
  queryOptions({
    queryKey: ["home news", organization, projects.map(({ id }) => id), visited],
    staleTime: AGAIN_MS,
    queryFn: async ({ signal }): Promise<News> => {
      const { since, before, known } = periodsOf(visited, Date.now());
      const logs = projects.filter(({ newest }) => Date.parse(newest ?? "") >= since);
      const isNow = compared("ge", ident("created"), literal(new Date(since).toISOString()));
      const counts = { dimensions: [project, item("now", isNow)], measures: tracesItems, from: logsOf(logs), filter: [createdFrom(before)] };
      const kinds = ["project", "experiment", "dataset", "prompt"] as const;
      const [made, rates, errors] = await Promise.all([
        Promise.all(kinds.map((kind) => readNewest(organization, kind, signal))),
        logs.length === 0 ? [] : runQuery(organization, counts, { signal }).then(({ rows }) => ratesOf(rows)),
        logs.length === 0 ? [] : readErrors(organization, logs, known, since, signal),
      ]);
      return { since, made: made.flat().filter(({ created }) => created >= since), rates, errors };
    },
  });
