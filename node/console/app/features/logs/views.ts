// Views of the logs: the built-in ones, and what of a list a view restores.
import { called, literal, path } from "../../btql/write";
import { writeColumns } from "./columns";
import type { LogsState } from "./url";

/** What a view restores. A built-in one leaves the rest as it is. */
export type ViewedState = Pick<LogsState, "filter" | "range" | "shape" | "columns" | "sort" | "group">;

export interface View {
  readonly id: string;
  readonly name: string;
  readonly isSaved: boolean;
  readonly restores: Partial<ViewedState>;
}

/** Where the server keeps the ids of the people that a row is assigned to. */
export const ASSIGNMENTS = ["metadata", "~__bt_assignments"] as const;

export function builtInViews(userId: string): readonly View[] {
  const isReview = `${path(["span_attributes", "type"])} = ${literal("review")}`;
  const isMine = `${path(ASSIGNMENTS)} INCLUDES ${literal(userId)}`;
  const view = (id: string, name: string, restores: Partial<ViewedState>): View => ({
    id,
    name,
    isSaved: false,
    restores: { filter: "", sort: "", group: "", ...restores },
  });
  return [
    view("", "All", {}),
    view("errors", "Errors", { filter: `${path(["error"])} IS NOT NULL` }),
    view("unreviewed", "Unreviewed", { shape: "traces", filter: `NOT ${called("any_span", isReview)}` }),
    view("mine", "Assigned to me", { filter: isMine }),
    view("slowest", "Slowest", { sort: "-duration" }),
    view("dearest", "Dearest", { sort: "-cost" }),
  ];
}

export function viewedState({ filter, range, shape, columns, sort, group }: ViewedState): ViewedState {
  return { filter, range, shape, columns, sort, group };
}

const written = (state: Partial<ViewedState>): Readonly<Record<string, unknown>> => ({
  ...state,
  columns: state.columns === undefined ? undefined : writeColumns(state.columns),
});

/** Whether the list shows something else than the view restores. */
export function isChanged(view: View, state: ViewedState): boolean {
  const now = written(viewedState(state));
  return Object.entries(written(view.restores)).some(([key, value]) => value !== undefined && now[key] !== value);
}
