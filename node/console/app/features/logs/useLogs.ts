// What the parts of the logs share: the state in the address, how it changes, and what is read for it.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { problemOf } from "../../lib/errors";
import type { LogRow } from "../../api/rows";
import { conjunction } from "../../btql/write";
import { createGridState, type GridState } from "../../design/GridTypes";
import { toast } from "../../design/Toast";
import { isKept, MOST_IN_ADDRESS } from "../../lib/address";
import { useLatest } from "../../lib/commands";
import { location, navigate, type HistoryChange } from "../../lib/router";
import type { Scope } from "./filter";
import { keepFilter } from "./kept";
import { openingMoment } from "./opening";
import { customsOf, requestOf, type LogsRequest } from "./request";
import { noted, redone, undoFrom, undone, type Narrowing, type Undo } from "./undo";
import { logsUrl, type LogsState } from "./url";

export interface Changes {
  /** Changes the state. A changed filter or range, and an opened row, push an entry of the history. */
  readonly change: (changed: Partial<LogsState>) => void;
  /** Takes another filter over. */
  readonly onFilter: (filter: string, how: "push" | "replace") => void;
  /** Narrows the list by one more expression, and may change more with it. */
  readonly addFilter: (expression: string, changed?: Partial<LogsState>) => void;
}

const pushes = (before: LogsState, after: LogsState): boolean =>
  before.filter !== after.filter || before.range !== after.range || before.version !== after.version || (before.row === "" && after.row !== "");

/** Goes to a state. A filter that is too long for the address is kept in a record first. */
function useGo(state: LogsState, projectId: string): (after: LogsState, how: HistoryChange) => void {
  const go = useLatest((after: LogsState, how: HistoryChange): void => {
    const isLong = after.filter.length > MOST_IN_ADDRESS;
    if (!isLong || (after.filter === state.filter && isKept(after.view))) {
      const view = !isLong && isKept(after.view) ? "" : after.view;
      return navigate(logsUrl.write({ ...after, view }), how);
    }
    const from = location.peek();
    keepFilter(after.organization, projectId, after.filter).then(
      (view) => {
        if (location.peek() === from) navigate(logsUrl.write({ ...after, view }), how);
      },
      (error: unknown) => toast(`The filter is too long for its link, and was not kept for it. ${problemOf(error, 0).text}`, true),
    );
  });
  const isBare = state.filter.length > MOST_IN_ADDRESS && !isKept(state.view);
  useEffect(() => {
    if (isBare) go(state, "replace");
  }, [isBare]);
  return go;
}

export function useChanges(state: LogsState, projectId: string): Changes {
  const go = useGo(state, projectId);
  const change = useLatest((changed: Partial<LogsState>): void => {
    const after = { ...state, ...changed };
    go(after, pushes(state, after) ? "push" : "stay");
  });
  const addFilter = useLatest((expression: string, changed: Partial<LogsState> = {}): void =>
    change({ filter: conjunction([state.filter, expression]), ...changed }),
  );
  const onFilter = useLatest((filter: string, how: "push" | "replace"): void =>
    go({ ...state, filter }, how),
  );
  return useMemo(() => ({ change, onFilter, addFilter }), [change, onFilter, addFilter]);
}

/**
 * The request of the list. A relative range starts at one moment until it is asked to start anew, so that paging and
 * new rows belong to one list.
 */
export function useRequest(state: LogsState, projectId: string) {
  const [present, setPresent] = useState(openingMoment);
  const { shape, filter, range, sort, group, version } = state;
  const anchored = useRef({ range, filter, present });
  if (anchored.current.range !== range) anchored.current = { range, filter, present: Date.now() };
  if (anchored.current.present < present) anchored.current = { range, filter, present };
  const start = anchored.current.present;
  const customs = customsOf(state).join("\u0000");
  const request: LogsRequest = useMemo(
    () => requestOf(state, projectId, start),
    [projectId, shape, filter, range, start, sort, group, version, customs],
  );
  const refresh = useCallback(() => setPresent(Date.now()), []);
  return { request, refresh };
}

/** What filter, facets and histogram are about. */
export function useScope(organization: string, { projectId, shape, filter, from, to, version }: LogsRequest): Scope {
  return useMemo(
    () => ({
      organization,
      source: { kind: "project_logs", id: projectId },
      shape,
      filter,
      bounds: { from, to },
      version,
    }),
    [organization, projectId, shape, filter, from, to, version],
  );
}

/** The last scope whose filter the server could read, so that one that is being typed takes nothing away. */
export function useUnderstood(scope: Scope, isUnderstood: boolean): Scope | null {
  const last = useRef<Scope | null>(null);
  if (isUnderstood) last.current = scope;
  return last.current;
}

/** Keeps what narrows the list, for undo and redo. */
export function useUndo(state: LogsState, change: Changes["change"]) {
  const { filter, range, shape, group } = state;
  const undo = useRef<Undo<Narrowing & Pick<LogsState, "shape">>>(undoFrom({ filter, range, shape, group }));
  useEffect(() => {
    undo.current = noted(undo.current, { filter, range, shape, group });
  }, [filter, range, shape, group]);
  return useMemo(() => {
    const go = (step: typeof undone): boolean => {
      const next = step(undo.current);
      if (next === undo.current) return false;
      undo.current = next;
      change(next.present);
      return true;
    };
    return { undo: () => go(undone), redo: () => go(redone) };
  }, [change]);
}

/** The key of the row that the open trace belongs to. */
export function openKey(rows: readonly LogRow[], state: LogsState): string | null {
  if (state.row === "") return null;
  if (state.shape === "traces") return state.row;
  const span = state.span === "" ? state.row : state.span;
  return rows.find((row) => row.rootSpanId === state.row && row.spanId === span)?.id ?? null;
}

/** The state of the grid, whose current row follows the open trace. */
export function useGridState(rows: readonly LogRow[], state: LogsState): GridState {
  const [grid] = useState(() => createGridState(state.shape === "traces" && state.row !== "" ? state.row : null));
  const key = openKey(rows, state);
  useEffect(() => {
    if (key !== null && key !== grid.cursor.at.peek()) grid.cursor.set(key);
  }, [key, grid]);
  useEffect(() => grid.selection.clear(), [grid, state.filter, state.range, state.shape, state.group]);
  return grid;
}
