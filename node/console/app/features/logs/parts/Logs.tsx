// The logs of a project that is known: the bar, the list, and the open trace.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { LogRow } from "../../../api/rows";
import type { NamedProject } from "../../../api/schema";
import type { GridState } from "../../../design/GridTypes";
import { readyAll } from "../../../design/Lazily";
import { TimeRange } from "../../../design/TimeRange";
import { useCommands } from "../../../lib/commands";
import { isHeldBack, letGo, whenIdle } from "../../../lib/first";
import { useFrozenAddress } from "../../../lib/frozen";
import { frozen } from "../../../lib/range";
import { announce } from "../../../lib/store";
import type { Place } from "../bulk";
import { columnOf, toggled } from "../columns";
import { logsCommands } from "../commands";
import { useExplain } from "../explain";
import { faultyColumn, isFilterFaulty } from "../faults";
import { FilterBar } from "../filter";
import { hasPages, SORTED_ROWS, type LogsRequest } from "../request";
import type { LogsScreenProps } from "../screen";
import { logsUrl } from "../url";
import { usePanel } from "../usePanel";
import { chosenRows, useChanges, useGridState, useRequest, useScope, useUnderstood, useUndo, type Changes } from "../useLogs";
import { useRows, type Rows } from "../useRows";
import { Bar, Live, Note } from "./Bar";
import { countWords, type BulkAction } from "./chosen";
import { BulkBar, BulkDialog, Facets, Groups, Histogram, laterParts, Panel } from "./later";
import style from "./Logs.module.css";
import { RowsList } from "./Rows";
import { VersionNote } from "./VersionNote";

export interface LogsProps extends LogsScreenProps {
  readonly project: NamedProject;
}

const NO_ROWS: readonly LogRow[] = [];

/** Why new rows cannot come by themselves; null if they can. */
function liveObstacle({ to, sort, version, group }: LogsRequest): string | null {
  if (version !== "") return "The list shows the past";
  if (group !== "") return "Groups do not change by themselves";
  if (to !== null) return "The range has an end";
  return sort === "" ? null : "New rows appear only while the newest come first";
}

/** Says how many rows there are, once they are read. */
function useAnnouncedCount(rows: Rows, request: LogsRequest): void {
  const { data, isReading } = rows.reading;
  const count = data?.length ?? 0;
  const words = `${countWords(count, request.shape)}${rows.hasMore ? " and more" : ""}`;
  useEffect(() => {
    if (data !== undefined && !isReading && !rows.isOld) announce(words);
  }, [isReading, rows.isOld, request]);
}

/** Lets all else go on once the rows are there, or will not come, and then loads what may be needed soon. */
function useFirst({ reading }: Rows, isGrouped: boolean): void {
  const isDone = isGrouped || reading.data !== undefined || reading.problem !== null;
  useEffect(() => {
    if (isDone) letGo();
  }, [isDone]);
  useEffect(() => {
    const stop = whenIdle(() => readyAll(laterParts));
    return () => {
      stop();
      letGo();
    };
  }, []);
}

interface BulkProps {
  readonly place: Place;
  readonly grid: GridState;
  readonly rows: readonly LogRow[];
  readonly request: LogsRequest;
  readonly action: BulkAction;
  readonly onAction: (action: BulkAction) => void;
}

/** What can be done with the selected rows, or with the current one. */
function Bulk({ place, grid, rows, request, action, onAction }: BulkProps) {
  const selected = grid.selection.ids.value;
  const current = grid.cursor.at.peek();
  const keys = selected.size > 0 ? [...selected] : current === null ? [] : [current];
  const chosen = chosenRows(rows, keys, request.shape);
  return (
    <>
      {selected.size > 0 && (
        <BulkBar chosen={chosen} onAction={onAction} onClear={() => grid.selection.clear()} />
      )}
      {action !== "none" && chosen.keys.length > 0 && (
        <BulkDialog
          key={action}
          {...{ action, chosen, place }}
          onClose={() => onAction("none")}
          onDone={() => grid.selection.clear()}
        />
      )}
    </>
  );
}

interface NotesProps {
  readonly state: LogsProps["state"];
  readonly change: Changes["change"];
  readonly count: number;
  /** The column whose expression the server refuses; null if there is none. */
  readonly faulty: string | null;
}

/** What is particular about the list, with the way back. */
function Notes({ state, change, count, faulty }: NotesProps) {
  const column = columnOf(state.sort.replace(/^-/, "")).title;
  return (
    <>
      {faulty !== null && (
        <Note action="Remove the column" onAction={() => change({ columns: toggled(state.columns, faulty) })}>
          The column {faulty} cannot be read.
        </Note>
      )}
      {state.version !== "" && <VersionNote version={state.version} onBack={() => change({ version: "" })} />}
      {state.group !== "" && (
        <Note action="Show without groups" onAction={() => change({ group: "" })}>
          Grouped by {state.group}
        </Note>
      )}
      {state.group === "" && !hasPages(state.sort) && count >= SORTED_ROWS && (
        <Note action="Newest first" onAction={() => change({ sort: "" })}>
          The first {SORTED_ROWS} by {column.toLowerCase()}
        </Note>
      )}
    </>
  );
}

/** The state of the screen, and what is read for it. */
function useScreen(props: LogsProps) {
  const { state, project } = props;
  const changes = useChanges(state, project.id);
  const { request, refresh } = useRequest(state, project.id);
  const [isLive, setLive] = useState(true);
  const shared = useRef<GridState | null>(null);
  const isAtTop = useCallback(() => shared.current?.isAtTop.peek() ?? true, []);
  const obstacle = liveObstacle(request);
  const rows = useRows({
    organization: state.organization,
    request,
    isLive: isLive && obstacle === null,
    isAtTop,
    isEnabled: state.group === "",
    onFull: refresh,
  });
  const found = rows.reading.data ?? NO_ROWS;
  const grid = useGridState(found, state);
  shared.current = grid;
  const { panel, open, close } = usePanel(props, found, grid, changes, request.version);
  const undo = useUndo(state, changes.change);
  useAnnouncedCount(rows, request);
  useFirst(rows, state.group !== "");
  useFrozenAddress(() => logsUrl.write({ ...state, range: frozen(state.range, Date.now()) }));
  const live = <Live isOn={isLive} obstacle={obstacle} onToggle={() => setLive(!isLive)} />;
  return { changes, request, rows, found, grid, panel, open, close, undo, live };
}

export function Logs(props: LogsProps) {
  const { state, project, userId, TracePanel } = props;
  const { changes, request, rows, found, grid, panel, open, close, undo, live } = useScreen(props);
  const { change } = changes;
  const [isFolded, setFolded] = useState(false);
  const [hasFacets, setFacets] = useState(() => window.matchMedia("(min-width: 75rem)").matches);
  const [action, setAction] = useState<BulkAction>("none");
  const scope = useScope(state.organization, request);
  const understood = useUnderstood(scope, !isFilterFaulty(rows.error));
  const explain = useExplain({ grid, scope: understood, onFilter: changes.addFilter });
  const isOpen = panel !== null;
  const isFirst = isHeldBack.value;
  useCommands(
    useMemo(
      () => logsCommands({ grid, undo, isOpen, close, act: setAction, togglePanel: () => setFolded((before) => !before) }),
      [grid, undo, isOpen, close],
    ),
  );
  const place = useMemo(
    () => ({ organization: state.organization, projectId: project.id }),
    [state.organization, project.id],
  );
  return (
    <div className={style["logs"]}>
      <Bar
        {...{ state, userId, request, change, hasFacets }}
        live={<>{live}{explain.button}</>}
        onFacets={() => setFacets(!hasFacets)}
        projectId={project.id}
        filter={<FilterBar scope={scope} onChange={changes.onFilter} />}
        range={<TimeRange value={state.range} onChange={(range) => change({ range })} />}
      />
      <div className={style["histogram"]}>
        {understood !== null && !isFirst && <Histogram scope={understood} onRange={(range) => change({ range })} onExplain={explain.ofRange} />}
      </div>
      <Notes state={state} change={change} count={found.length} faulty={faultyColumn(rows.error, request)} />
      <div className={style["body"]}>
        {hasFacets && !isOpen && !explain.isOpen && understood !== null && (
          <aside className={style["facets"]} aria-label="Facets">
            {!isFirst && <Facets scope={understood} onChange={changes.onFilter} />}
          </aside>
        )}
        <div className={style["list"]}>
          {state.group === "" ? (
            <>
              <RowsList {...changes} {...{ state, request }} projectId={project.id} grid={grid} rows={rows} onOpenRow={open} />
              <Bulk {...{ place, grid, request, action }} rows={found} onAction={setAction} />
            </>
          ) : (
            <Groups {...changes} state={state} request={request} />
          )}
        </div>
        {explain.panel}
        {panel !== null && !isFolded && <Panel panel={panel} TracePanel={TracePanel} />}
      </div>
    </div>
  );
}
