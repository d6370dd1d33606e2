// What the list and the open trace tell each other.
import type { LogRow } from "../../api/rows";
import type { NamedProject } from "../../api/schema";
import type { GridState } from "../../design/GridTypes";
import { useLatest } from "../../lib/commands";
import { moved } from "../../lib/store";
import { TRACE_VIEW, type TracePanelProps } from "../../lib/trace";
import { useEffect, useRef } from "react";
import { keyOf } from "./tail";
import type { LogsState } from "./url";
import { openKey, type Changes } from "./useLogs";

interface PanelOptions {
  readonly state: LogsState;
  readonly project: NamedProject;
}

/** How long the current row has to rest before the open trace follows it, so that a held key stays swift. */
const FOLLOW_MS = 60;

export function usePanel(
  { state, project }: PanelOptions,
  rows: readonly LogRow[],
  grid: GridState,
  { change, addFilter }: Changes,
  version: string,
) {
  const find = (key: string | null): LogRow | undefined => rows.find((row) => keyOf(row, state.shape) === key);
  const open = useLatest((row: LogRow): void => {
    const span = row.spanId === row.rootSpanId || state.shape === "traces" ? "" : row.spanId;
    change({ row: row.rootSpanId, span, ...(state.row === "" ? {} : { find: "" }) });
  });
  const follow = useLatest((key: string | null): void => {
    const row = find(key);
    if (row !== undefined && state.row !== "" && key !== openKey(rows, state)) open(row);
  });
  const timer = useRef(0);
  useEffect(() => {
    const stop = grid.cursor.at.subscribe((key) => {
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => follow(key), FOLLOW_MS);
    });
    return () => {
      stop();
      window.clearTimeout(timer.current);
    };
  }, [grid, follow]);
  const step = useLatest((by: 1 | -1): void => {
    const from = openKey(rows, state) ?? grid.cursor.at.peek();
    const row = find(moved(rows.map((one) => keyOf(one, state.shape)), from, by));
    if (row === undefined) return;
    grid.cursor.set(keyOf(row, state.shape));
    open(row);
  });
  const close = useLatest((): void => {
    change({ row: "", ...TRACE_VIEW });
    grid.actions.focus(null);
  });
  const onView = useLatest(({ span, tab, find: text, lens }: TracePanelProps["view"]) =>
    change({ span, tab, find: text, lens }),
  );
  const panel: TracePanelProps | null =
    state.row === ""
      ? null
      : {
          organization: state.organization,
          project,
          source: { kind: "project_logs", id: project.id },
          root: state.row,
          view: { span: state.span, tab: state.tab, find: state.find, lens: state.lens },
          onView,
          version,
          onClose: close,
          onStep: step,
          onFilter: addFilter,
        };
  return { panel, open, close };
}
