// What else the list asks for, once its first rows are there: what came since, groups, counts and exports.
import { called, compared, ident, item, literal, sourceOf, written, type QueryObject } from "../../api/query";
import { conditions, PREVIEW_LENGTH, selected, sortOf, sourceExpression, type LogsRequest } from "./request";

export const TAIL_ROWS = 500;
export const GROUPS = 500;

/** What came, or changed, after a transaction. */
export function tailOf(request: LogsRequest, transaction: string): QueryObject {
  const after = compared("gt", ident("_xact_id"), literal(transaction));
  return {
    select: selected(request),
    from: sourceExpression(request),
    filter: [...conditions(request), after],
    preview_length: PREVIEW_LENGTH,
    limit: TAIL_ROWS,
  };
}

/** The groups of rows with equal values of a path, those with the most rows first. */
export function groupsOf(request: LogsRequest): QueryObject {
  const failed = request.shape === "traces" ? called("sum", ident("span_type_info", "has_error")) : called("count", ident("error"));
  return {
    dimensions: [item("value", written(request.group))],
    measures: [
      item("n", called("count", literal(1))),
      item("errors", failed),
      item("duration", called("percentile", ident("metrics", "duration"), literal(0.95))),
      item("tokens", called("sum", ident("metrics", "total_tokens"))),
      item("cost", called("sum", ident("metrics", "estimated_cost"))),
      item("newest", called("max", ident("created"))),
    ],
    from: sourceExpression(request),
    filter: conditions(request),
    sort: [{ expr: ident("n"), dir: "desc" }],
    limit: GROUPS,
  };
}

/** The whole rows that an export holds: all that the filter finds, not only what the page has loaded. */
export function exportOf(request: LogsRequest): QueryObject {
  const sort = sortOf(request.sort);
  return {
    select: [{ op: "star" }],
    from: sourceExpression(request),
    filter: conditions(request),
    preview_length: -1,
    ...(sort.length === 0 ? {} : { sort }),
  };
}

/** How many rows a filter finds. */
export const countOf = (request: LogsRequest): QueryObject => ({
  measures: [item("n", called("count", literal(1)))],
  from: sourceExpression(request),
  filter: conditions(request),
});

/** When the newest row of the project was made, whatever the range. */
export const newestOf = (projectId: string): QueryObject => ({
  measures: [item("newest", called("max", ident("created")))],
  from: sourceOf("project_logs", projectId),
});
