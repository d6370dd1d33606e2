// The requests of the histogram: the counts of its bars, and those of the whole range.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { runCount } from "../../../api/counting";
import type { Fields } from "../../../api/narrow";
import {
  called,
  ident,
  item,
  literal,
  type Expression,
  type Item,
} from "../../../api/query";
import { conditionsOf, countedSource, scopeKey, type Scope } from "../filter/scope";
import { unitOf, type Extent } from "../../../lib/buckets";
import { barsOf, barWidth, type Bar } from "./bars";

export interface Totals {
  readonly count: number;
  readonly errors: number;
  /** From the first to the last row; null if there is none. */
  readonly extent: Extent | null;
}

/** What is drawn: bars, and the extent that they belong to. */
export interface Drawn {
  readonly extent: Extent;
  readonly bars: readonly Bar[];
  /** Minutes from the zone of the bars to UTC. */
  readonly tzOffset: number;
}

const created = ident("created");
const failed: Expression = { op: "isnotnull", expr: ident("error") };
const rootIfFailed: Expression = {
  op: "if",
  conds: [{ cond: failed, then: ident("root_span_id") }],
  else: literal(null),
};

const counts = ({ shape }: Scope): readonly Item[] =>
  shape === "traces"
    ? [
        item("n", called("count_distinct", ident("root_span_id"))),
        item("errors", called("count_distinct", rootIfFailed)),
      ]
    : [item("n", called("count", literal(1))), item("errors", called("count", ident("error")))];

const numberOf = (value: unknown): number => (typeof value === "number" ? value : 0);

function totalsOf(row: Fields): Totals {
  const [first, last] = [row["first"], row["last"]];
  const extent =
    typeof first === "string" && typeof last === "string" ? { from: Date.parse(first), to: Date.parse(last) + 1 } : null;
  return { count: numberOf(row["n"]), errors: numberOf(row["errors"]), extent };
}

export const totalsQuery = (scope: Scope) =>
  queryOptions({
    queryKey: ["log totals", ...scopeKey(scope)],
    queryFn: async ({ signal }): Promise<Totals> => {
      const measures = [...counts(scope), item("first", called("min", created)), item("last", called("max", created))];
      const query = { measures, from: countedSource(scope), filter: conditionsOf(scope) };
      const page = await runCount(scope.organization, query, { signal, version: scope.version ?? "" });
      return totalsOf(page.rows[0] ?? {});
    },
    placeholderData: keepPreviousData,
  });

/** The extent of the axis: the bounds, and where one is absent the present or the first row. */
export function extentOf({ bounds }: Scope, totals: Totals | undefined, present: number): Extent | null {
  const to = bounds.to === null ? present : Date.parse(bounds.to);
  if (bounds.from !== null) return { from: Date.parse(bounds.from), to: Math.max(to, Date.parse(bounds.from) + 1000) };
  if (totals === undefined) return null;
  const from = totals.extent?.from ?? to - 3_600_000;
  const end = bounds.to === null ? (totals.extent?.to ?? to) : to;
  return { from, to: Math.max(end, from + 1000) };
}

export const barsQuery = (scope: Scope, extent: Extent, tzOffset: number) =>
  queryOptions({
    queryKey: ["log histogram", tzOffset, extent.from, ...scopeKey(scope)],
    queryFn: async ({ signal }): Promise<Drawn> => {
      const width = barWidth(extent);
      const query = {
        dimensions: [item("t", called("date_trunc", literal(unitOf(width)), created))],
        measures: counts(scope),
        from: countedSource(scope),
        filter: conditionsOf(scope),
      };
      const page = await runCount(scope.organization, query, { signal, tzOffset, version: scope.version ?? "" });
      return { extent, bars: barsOf(page.rows, extent, width, tzOffset), tzOffset };
    },
    placeholderData: keepPreviousData,
  });
