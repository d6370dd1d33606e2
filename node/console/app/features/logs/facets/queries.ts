// The requests of facets of numbers: their extent, and how they are distributed.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { runCount } from "../../../api/counting";
import { called, ident, item, literal, type Expression } from "../../../api/query";
import type { KnownField } from "../../../btql";
import { conditionsOf, countedSource, scopeKey, type Scope } from "../filter/scope";
import { edgeOf, roundStep } from "./sections";

export interface NumberBar {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

export interface Distribution {
  readonly low: number;
  readonly high: number;
  readonly mean: number;
  readonly bars: readonly NumberBar[];
}

export const MAX_BARS = 8;

const countOf = ({ shape }: Scope): Expression =>
  shape === "traces" ? called("count_distinct", ident("root_span_id")) : called("count", literal(1));

const numberOf = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

/** The index of the step in which a number lies. Rounding removes the noise of binary fractions at the edges. */
const stepOf = (number: Expression, step: number): Expression =>
  called("floor", called("round", { op: "div", left: number, right: literal(step) }, literal(9)));

async function readBars(scope: Scope, number: Expression, step: number, signal: AbortSignal): Promise<readonly NumberBar[]> {
  const query = {
    dimensions: [item("step", stepOf(number, step))],
    measures: [item("n", countOf(scope))],
    from: countedSource(scope),
    filter: conditionsOf(scope),
    sort: [{ expr: ident("step"), dir: "asc" as const }],
    limit: 1000,
  };
  const page = await runCount(scope.organization, query, { signal, version: scope.version ?? "" });
  return page.rows.flatMap((row) => {
    const [index, count] = [numberOf(row["step"]), numberOf(row["n"])];
    return index === null || count === null
      ? []
      : [{ from: edgeOf(index, step), to: edgeOf(index + 1, step), count }];
  });
}

/** All steps between the first and the last bar, with those that are empty. */
function filled(bars: readonly NumberBar[], step: number): readonly NumberBar[] {
  const [first, last] = [bars[0], bars.at(-1)];
  if (first === undefined || last === undefined) return [];
  const byEdge = new Map(bars.map((bar) => [bar.from, bar]));
  const start = Math.round(first.from / step);
  const count = Math.min(Math.round(last.from / step) - start + 1, 2 * MAX_BARS);
  return Array.from({ length: count }, (_, index) => {
    const from = edgeOf(start + index, step);
    return byEdge.get(from) ?? { from, to: edgeOf(start + index + 1, step), count: 0 };
  });
}

/** How the numbers of a field are distributed; null if no row has one. */
export const distributionQuery = (scope: Scope, field: KnownField) =>
  queryOptions({
    queryKey: ["log numbers", field.path, ...scopeKey(scope)],
    queryFn: async ({ signal }): Promise<Distribution | null> => {
      const number = called("to_number", ident(...field.path));
      const query = {
        measures: [
          item("low", called("min", number)),
          item("high", called("max", number)),
          item("mean", called("avg", number)),
        ],
        from: countedSource(scope),
        filter: conditionsOf(scope),
      };
      const page = await runCount(scope.organization, query, { signal, version: scope.version ?? "" });
      const row = page.rows[0] ?? {};
      const [low, high, mean] = [numberOf(row["low"]), numberOf(row["high"]), numberOf(row["mean"])];
      if (low === null || high === null || mean === null) return null;
      const step = roundStep(low, high, MAX_BARS);
      return { low, high, mean, bars: filled(await readBars(scope, number, step, signal), step) };
    },
    placeholderData: keepPreviousData,
  });
