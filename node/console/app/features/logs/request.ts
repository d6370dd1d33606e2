// What the list of logs asks for: the query of its rows, of its groups, and of what came since.
import {
  called,
  columns,
  compared,
  ident,
  item,
  literal,
  sourceOf,
  written,
  type Expression,
  type Item,
  type QueryObject,
} from "../../api/query";
import { customAlias } from "../../api/rows";
import { boundsOf } from "../../lib/range";
import { readVersion, sentVersion } from "../../lib/version";
import { columnOf, isBuiltIn } from "./columns";
import type { LogShape, LogsState } from "./url";

export const PAGE_ROWS = 100;
/** How many rows of a sort that has no pages are read. */
export const SORTED_ROWS = 500;

export const PREVIEW_LENGTH = 160;
/** How much of a chat's last message is asked for: enough for the preview of twelve lines. */
const MESSAGE_LENGTH = 800;

/** Everything that the rows depend on. */
export interface LogsRequest {
  readonly projectId: string;
  readonly shape: LogShape;
  readonly filter: string;
  /** The bounds of time as ISO text; null for none. */
  readonly from: string | null;
  readonly to: string | null;
  readonly sort: string;
  readonly group: string;
  readonly version: string;
  /** Expressions of columns that are not built in. */
  readonly customs: readonly string[];
}

/** The part of the state that rows depend on. */
export type Narrowed = Pick<LogsState, "shape" | "filter" | "range" | "sort" | "group" | "version" | "columns">;

export const customsOf = (state: Pick<LogsState, "columns">): readonly string[] =>
  state.columns.filter((column) => !isBuiltIn(column.id)).map((column) => column.id);

/** What a state asks for at a moment, from which a relative range counts. */
export function requestOf(state: Narrowed, projectId: string, present: number): LogsRequest {
  const { shape, filter, range, sort, group, version } = state;
  return {
    projectId,
    shape,
    filter,
    ...boundsOf(range, present),
    sort,
    group,
    version: sentVersion(readVersion(version)),
    customs: customsOf(state),
  };
}

export const sourceExpression = ({ projectId, shape }: Pick<LogsRequest, "projectId" | "shape">): Expression =>
  sourceOf("project_logs", projectId, shape === "traces" ? "summary" : "spans");

/** The conditions of the range and the filter. The filter stays an expression of its own. */
export function conditions({ from, to, filter }: Pick<LogsRequest, "from" | "to" | "filter">): readonly Expression[] {
  const created = ident("created");
  return [
    ...(from === null ? [] : [compared("ge", created, literal(from))]),
    ...(to === null ? [] : [compared("lt", created, literal(to))]),
    ...(filter.trim() === "" ? [] : [written(filter)]),
  ];
}

const LAST_INPUT = [
  ["input", "messages", -1, "content", 0, "text"],
  ["input", "messages", -1, "content"],
  ["input", -1, "content", 0, "text"],
  ["input", -1, "content"],
] as const;

const LAST_OUTPUT = [
  ["output", "choices", 0, "message", "content"],
  ["output", 0, "message", "content"],
  ["output", "messages", -1, "content"],
  ["output", -1, "content", 0, "text"],
  ["output", -1, "content"],
  ["output", "content", 0, "text"],
  ["output", "content"],
] as const;

/** The start of the first of some paths that has a value, as text. */
const firstText = (paths: readonly (readonly (string | number)[])[]): Expression =>
  called(
    "left",
    called("to_string", called("coalesce", ...paths.map((path) => ident(...path)))),
    literal(MESSAGE_LENGTH),
  );

/** The columns that every row has. */
function basics(shape: LogShape): readonly Item[] {
  return [
    ...columns("id", "span_id", "root_span_id", "created", "input", "output", "expected", "error", "metadata"),
    ...columns("span_attributes", "scores", "tags", "_xact_id", "_pagination_key"),
    ...(shape === "traces" ? columns("span_type_info") : []),
    item("duration", ident("metrics", "duration")),
    item("tokens", ident("metrics", "total_tokens")),
    item("cost", ident("metrics", "estimated_cost")),
    item("model", ident("metadata", "model")),
    item("input_text", firstText(LAST_INPUT)),
    item("output_text", firstText(LAST_OUTPUT)),
  ];
}

/** How many columns stand in the query before those of expressions. */
export const basicCount = (shape: LogShape): number => basics(shape).length;

export const selected = ({ shape, customs }: LogsRequest): readonly Item[] => [
  ...basics(shape),
  ...customs.map((custom, index) => item(customAlias(index), written(custom))),
];

type Sort = NonNullable<QueryObject["sort"]>;

/** The sort of rows. Only by arrival there are pages. */
export function sortOf(sort: string): Sort {
  if (sort === "") return [];
  const isDescending = sort.startsWith("-");
  const sortBy = columnOf(isDescending ? sort.slice(1) : sort).sortBy;
  return sortBy === undefined ? [] : [{ expr: written(sortBy), dir: isDescending ? "desc" : "asc" }];
}

/** Whether rows come in an order of which the server has pages. */
export const hasPages = (sort: string): boolean => sort === "" || sort === "arrived" || sort === "-arrived";

export function rowsOf(request: LogsRequest, cursor: string): QueryObject {
  const sort = sortOf(request.sort);
  return {
    select: selected(request),
    from: sourceExpression(request),
    filter: conditions(request),
    preview_length: PREVIEW_LENGTH,
    limit: hasPages(request.sort) ? PAGE_ROWS : SORTED_ROWS,
    ...(sort.length === 0 ? {} : { sort }),
    ...(cursor === "" ? {} : { cursor }),
  };
}
