// What the server is asked, from the state of the screen.
import type { ComparisonRequest, ComparisonSort } from "../../api/comparison";
import type { QueryObject } from "../../api/query";
import { columns, ident, item, literal, written } from "../../api/query";
import { readVersion, sentVersion } from "../../lib/version";
import { measureOf, orderOf } from "./measures";
import type { CompareState, Sort } from "./url";

type Asked = Pick<CompareState, "filter" | "group" | "score" | "only" | "sort" | "version">;

interface Order {
  readonly sort: ComparisonSort;
  readonly order: "asc" | "desc";
}

function orderFor(sort: Sort, score: string, hasBase: boolean): Order {
  const measure = measureOf(score);
  switch (sort) {
    case "worst":
    case "best": {
      const order = orderOf(measure, sort === "worst");
      return { sort: hasBase ? "delta" : "score", order };
    }
    case "low":
      return { sort: "score", order: "asc" };
    case "high":
      return { sort: "score", order: "desc" };
    case "key":
      return { sort: "key", order: "asc" };
  }
}

/** The request for experiments, the first of which is looked at and the second of which is the base. */
export function requestOf(state: Asked, experiments: readonly string[]): ComparisonRequest {
  const base = experiments[1] ?? "";
  return {
    experiments,
    base,
    filter: state.filter,
    group: state.group,
    score: state.score,
    only: state.only === "all" ? "" : state.only,
    version: sentVersion(readVersion(state.version)),
    ...orderFor(state.sort, state.score, base !== ""),
  };
}

/** The query whose result is exported: all rows of the experiments that fulfil the filter, a trace each. */
export function exportOf({ experiments, filter }: ComparisonRequest, key: string): QueryObject {
  const query = {
    select: [
      ...columns("experiment_id", "id", "root_span_id", "created"),
      item("comparison_key", ident("comparison_key")),
      ...columns("input", "output", "expected", "error", "scores", "metrics", "metadata", "tags"),
    ],
    from: { op: "function", name: ident("experiment"), args: experiments.map((id) => literal(id)), shape: "summary" },
    filter: filter.trim() === "" ? [] : [written(filter)],
    comparison_key: written(key),
    preview_length: -1,
  };
  return query;
}
