// The requests of the monitor. Each card is one query; all share the range, the filter and the values of the group.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { runInTurn, type Owner, readDashboards } from "../../api/monitor";
import type { Fields } from "../../api/narrow";
import {
  called,
  compared,
  ident,
  item,
  literal,
  sourceOf,
  written,
  type Expression,
  type Item,
  type QueryObject,
  type Shape,
} from "../../api/query";
import { bucketsOf, unitOf, widthFor, type Extent } from "../../lib/buckets";
import type { Bounds } from "../../lib/range";
import { cardKey, isSum, measureItems, measuresOf, type Card } from "./cards";
import { dashboardOf, type Dashboard } from "./dashboards";
import { drawnOf, MOST_LINES, type Drawn, type Groups, type GroupValue } from "./series";
import type { MonitorShape } from "./url";

/** What all cards are about. */
export interface Scope {
  readonly organization: string;
  readonly projectId: string;
  readonly shape: MonitorShape;
  readonly bounds: Bounds;
  readonly filter: string;
  readonly group: string;
  /** The version as of which rows are read, as the server takes it; empty for now. */
  readonly version: string;
}

const keyOf = ({ organization, projectId, shape, bounds, filter, group, version }: Scope): readonly unknown[] => [
  organization,
  projectId,
  shape,
  bounds.from,
  bounds.to,
  filter,
  group,
  version,
];

const created = ident("created");

function conditionsOf({ bounds, filter }: Scope): readonly Expression[] {
  return [
    ...(bounds.from === null ? [] : [compared("ge", created, literal(bounds.from))]),
    ...(bounds.to === null ? [] : [compared("lt", created, literal(bounds.to))]),
    ...(filter.trim() === "" ? [] : [written(filter)]),
  ];
}

/** All spans of what is counted: those of the traces that the filter finds, or those that it finds themselves. */
const spansOf = ({ projectId, shape, filter }: Scope): Expression =>
  sourceOf("project_logs", projectId, shape === "traces" && filter.trim() !== "" ? "traces" : "spans");

const rowShape = ({ shape }: Scope): Shape => (shape === "traces" ? "summary" : "spans");

const rowsOf = (scope: Scope): Expression => sourceOf("project_logs", scope.projectId, rowShape(scope));

const isNotNull = (expr: Expression): Expression => ({ op: "isnotnull", expr });

/** The first and the last moment of all rows, for ranges without bounds; null if there are none. */
export const extentQuery = (scope: Scope) =>
  queryOptions({
    queryKey: ["monitor extent", ...keyOf(scope)],
    queryFn: async ({ signal }): Promise<Extent | null> => {
      const query: QueryObject = {
        measures: [item("first", called("min", created)), item("last", called("max", created))],
        from: spansOf(scope),
        filter: conditionsOf(scope),
      };
      const row = (await runInTurn(scope.organization, query, { signal, version: scope.version })).rows[0] ?? {};
      const [first, last] = [row["first"], row["last"]];
      return typeof first === "string" && typeof last === "string" ? { from: Date.parse(first), to: Date.parse(last) + 1 } : null;
    },
    placeholderData: keepPreviousData,
  });

const isGroupValue = (value: unknown): value is GroupValue =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";

/** The most frequent values of the group, which have the same lines on all cards. */
export const groupsQuery = (scope: Scope) =>
  queryOptions({
    queryKey: ["monitor groups", ...keyOf(scope)],
    queryFn: async ({ signal }): Promise<Groups> => {
      const query: QueryObject = {
        dimensions: [item("k", written(scope.group))],
        measures: [item("n", called("count", literal(1)))],
        from: rowsOf(scope),
        filter: [...conditionsOf(scope), isNotNull(written(scope.group))],
        sort: [{ expr: ident("n"), dir: "desc" }],
        limit: MOST_LINES + 1,
      };
      const values = (await runInTurn(scope.organization, query, { signal, version: scope.version })).rows.map((row) => row["k"] ?? null);
      return { values: values.filter(isGroupValue).slice(0, MOST_LINES), hasOther: values.length > MOST_LINES };
    },
    placeholderData: keepPreviousData,
  });

/** The number of the line that a row belongs to. */
function lineOf(group: string, { values }: Groups): Expression {
  return {
    op: "if",
    conds: values.map((value, index) => ({ cond: compared("eq", written(group), literal(value)), then: literal(index) })),
    else: literal(values.length),
  };
}

/** How many buckets a chart has at the most. */
const MOST_BUCKETS = 72;

export interface Plan {
  readonly scope: Scope;
  readonly extent: Extent;
  /** Minutes from the zone of the buckets to UTC. */
  readonly tzOffset: number;
  /** Null if the cards are not grouped. */
  readonly groups: Groups | null;
}

/** Traces and their errors are counted on spans where that gives the same numbers, which is faster. */
function countsOfTraces(card: Card, { scope, groups }: Plan): readonly Item[] | null {
  if (scope.shape !== "traces" || groups !== null || card.kind !== "fixed") return null;
  const root = ident("root_span_id");
  if (card.id === "traces") return [item("y0", called("count_distinct", root))];
  if (card.id !== "errors") return null;
  const failed: Expression = { op: "if", conds: [{ cond: isNotNull(ident("error")), then: root }], else: literal(null) };
  return [item("y0", called("count_distinct", failed))];
}

export function linesRequest(card: Card, plan: Plan): QueryObject {
  const { scope, extent, groups } = plan;
  const bucket = item("t", called("date_trunc", literal(unitOf(widthFor(extent, MOST_BUCKETS))), created));
  const counts = countsOfTraces(card, plan);
  return {
    dimensions: groups === null ? [bucket] : [bucket, item("k", lineOf(scope.group, groups))],
    measures: counts ?? measureItems(card, scope.shape),
    from: counts === null ? rowsOf(scope) : spansOf(scope),
    filter: [...conditionsOf(scope), ...(groups === null ? [] : [isNotNull(written(scope.group))])],
  };
}

export const linesQuery = (card: Card, plan: Plan) =>
  queryOptions({
    queryKey: ["monitor card", cardKey(card), plan.extent.from, plan.extent.to, plan.tzOffset, plan.groups, ...keyOf(plan.scope)],
    queryFn: async ({ signal }): Promise<Drawn> => {
      const { scope, extent, tzOffset, groups } = plan;
      const width = widthFor(extent, MOST_BUCKETS);
      const page = await runInTurn(scope.organization, linesRequest(card, plan), { signal, tzOffset, version: scope.version });
      return drawnOf(page.rows, {
        xs: bucketsOf(extent, width, tzOffset, MOST_BUCKETS + 1),
        extent,
        bucketMs: width.milliseconds,
        measures: measuresOf(card, scope.shape).map(({ name }) => name),
        groups,
        isSum: isSum(card),
      });
    },
    placeholderData: keepPreviousData,
  });

export interface ListedValue {
  readonly value: unknown;
  readonly count: number;
  /** A second number of the value, such as its cost; null for none. */
  readonly more: number | null;
}

const numberOf = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);

function readValue(row: Fields): ListedValue {
  return { value: row["k"] ?? null, count: numberOf(row["n"]) ?? 0, more: numberOf(row["more"]) };
}

const LISTED = 8;

/** The field whose values a card lists. */
export const listedPath = (card: Card): readonly [string, ...string[]] =>
  card.kind === "fixed" && card.id === "failures" ? ["error"] : ["metadata", "model"];

/** The most frequent values of a card that lists them, counted in spans. */
export const listQuery = (card: Card, scope: Scope) =>
  queryOptions({
    queryKey: ["monitor list", cardKey(card), ...keyOf({ ...scope, group: "" })],
    queryFn: async ({ signal }): Promise<readonly ListedValue[]> => {
      const path = ident(...listedPath(card));
      const query: QueryObject = {
        dimensions: [item("k", path)],
        measures: [item("n", called("count", literal(1))), item("more", called("sum", called("estimated_cost")))],
        from: spansOf(scope),
        filter: [...conditionsOf(scope), ...(scope.shape === "spans" || scope.filter.trim() === "" ? [isNotNull(path)] : [])],
        sort: [{ expr: ident("n"), dir: "desc" }],
        limit: LISTED + 1,
      };
      const page = await runInTurn(scope.organization, query, { signal, version: scope.version });
      return page.rows.map(readValue).filter(({ value }) => value !== null).slice(0, LISTED);
    },
    placeholderData: keepPreviousData,
  });

const MOST_SCORES = 24;

/** The names of the scores that rows of the range have, the most frequent first. */
export const scoresQuery = (scope: Scope) =>
  queryOptions({
    queryKey: ["monitor scores", ...keyOf({ ...scope, group: "" })],
    queryFn: async ({ signal }): Promise<readonly string[]> => {
      const query: QueryObject = {
        unpivot: [{ expr: ident("scores"), alias: ["score", "value"] }],
        dimensions: [item("k", ident("score"))],
        measures: [item("n", called("count", ident("value")))],
        from: spansOf(scope),
        filter: conditionsOf(scope),
        sort: [{ expr: ident("n"), dir: "desc" }],
        limit: MOST_SCORES,
      };
      const page = await runInTurn(scope.organization, query, { signal, version: scope.version });
      return page.rows.flatMap(({ k }) => (typeof k === "string" && k !== "" ? [k] : []));
    },
    placeholderData: keepPreviousData,
  });


/** The fields of rows that can group: texts, numbers with few values, and flags. Of traces those of their roots. */
export const groupFieldsQuery = (scope: Scope) =>
  queryOptions({
    queryKey: ["monitor fields", ...keyOf({ ...scope, group: "", filter: "" })],
    queryFn: async ({ signal }): Promise<readonly (readonly string[])[]> => {
      const query: QueryObject = {
        infer: [ident("metadata"), ident("span_attributes")],
        from: sourceOf("project_logs", scope.projectId),
        filter: [...conditionsOf({ ...scope, filter: "" }), ...(scope.shape === "traces" ? [written("is_root")] : [])],
        inference_budget: 1000,
      };
      const page = await runInTurn(scope.organization, query, { signal, version: scope.version });
      return page.rows.flatMap(({ name, type }) => {
        const isPlain = type === "string" || type === "boolean" || type === "number";
        const path = Array.isArray(name) ? name.filter((step) => typeof step === "string") : [];
        return isPlain && path.length > 1 ? [path] : [];
      });
    },
    staleTime: 60_000,
    placeholderData: keepPreviousData,
  });

export const dashboardsKey = ({ organization, projectId }: Owner) => ["views", "monitor", organization, projectId] as const;

export const dashboardsQuery = (owner: Owner) =>
  queryOptions({
    queryKey: dashboardsKey(owner),
    queryFn: async ({ signal }): Promise<readonly Dashboard[]> => (await readDashboards(owner, signal)).map(dashboardOf),
  });

/** Tries the expression of an own chart. What is wrong with it is thrown. */
export async function tryMeasure(scope: Scope, measure: string, signal: AbortSignal): Promise<void> {
  const query = { measures: [item("y", written(measure))], from: rowsOf(scope), filter: conditionsOf(scope) };
  await runInTurn(scope.organization, query, { signal, version: scope.version });
}
