// The address of a project's logs: everything that the screen shows.
import {
  choiceParameter,
  isReserved,
  MOST_IN_ADDRESS,
  organizationAddress,
  textParameter,
  type Codec,
} from "../../lib/address";
import { TRACE_LENSES, type TraceLens } from "../../lib/trace";
import { COLUMNS_BY_DEFAULT, readColumns, writeColumns, type ColumnSpec } from "./columns";

export const LOG_SHAPES = ["traces", "spans"] as const;

/** Whether a row is a trace or a span. */
export type LogShape = (typeof LOG_SHAPES)[number];

export interface LogsState {
  readonly organization: string;
  /** The name of the project. */
  readonly project: string;
  /** The expression that rows fulfil; empty for all. A long one is kept in a record, which `view` names. */
  readonly filter: string;
  /** The range of time, in the form of `lib/range`. */
  readonly range: string;
  /** The view that was chosen: a word of a built-in one, or an id; empty for all rows. */
  readonly view: string;
  readonly shape: LogShape;
  readonly columns: readonly ColumnSpec[];
  /** A column's id, with `-` before it for descending; empty for what arrived last first. */
  readonly sort: string;
  /** The path by which rows are grouped; empty for no groups. */
  readonly group: string;
  /** The root span of the open trace; empty for none. */
  readonly row: string;
  /** The selected span of the open trace; empty for its root. */
  readonly span: string;
  readonly tab: string;
  readonly find: string;
  readonly lens: TraceLens;
  /** The transaction or moment as of which rows are read; empty for now. */
  readonly version: string;
  /** The id of a row that SDKs print; the screen replaces it by the row's trace and span. */
  readonly oid: string;
}

export const RANGE_BY_DEFAULT = "1h";

export const logsDefaults = (organization: string, project: string): LogsState => ({
  organization,
  project,
  filter: "",
  range: RANGE_BY_DEFAULT,
  view: "",
  shape: "traces",
  columns: COLUMNS_BY_DEFAULT,
  sort: "",
  group: "",
  row: "",
  span: "",
  tab: "",
  find: "",
  lens: "tree",
  version: "",
  oid: "",
});

export const logsUrl: Codec<LogsState> = {
  read: ({ segments, rawFirst, query }) => {
    const [organization, p, project, logs, ...rest] = segments;
    if (organization === undefined || project === undefined || isReserved(rawFirst)) return null;
    if (p !== "p" || logs !== "logs" || rest.length > 0) return null;
    return {
      organization,
      project,
      filter: textParameter(query, "q"),
      range: textParameter(query, "t") || RANGE_BY_DEFAULT,
      view: textParameter(query, "v"),
      shape: choiceParameter(query, "shape", LOG_SHAPES, "traces"),
      columns: readColumns(textParameter(query, "cols")),
      sort: textParameter(query, "sort"),
      group: textParameter(query, "g"),
      row: textParameter(query, "r"),
      span: textParameter(query, "s"),
      tab: textParameter(query, "tab"),
      find: textParameter(query, "find"),
      lens: choiceParameter(query, "lens", TRACE_LENSES, "tree"),
      version: textParameter(query, "version"),
      oid: textParameter(query, "oid"),
    };
  },
  write: (state) =>
    organizationAddress(state.organization, ["p", state.project, "logs"], [
      ["q", state.filter.length > MOST_IN_ADDRESS ? "" : state.filter, ""],
      ["t", state.range, RANGE_BY_DEFAULT],
      ["v", state.view, ""],
      ["shape", state.shape, "traces"],
      ["cols", writeColumns(state.columns), ""],
      ["sort", state.sort, ""],
      ["g", state.group, ""],
      ["r", state.row, ""],
      ["s", state.span, ""],
      ["tab", state.tab, ""],
      ["find", state.find, ""],
      ["lens", state.lens, "tree"],
      ["version", state.version, ""],
      ["oid", state.oid, ""],
    ]),
};
