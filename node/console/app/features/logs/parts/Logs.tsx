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
import { columnOf, toggled } from "../columns";
import { logsCommands } from "../commands";
import { useExplain } from "../explain";
import { faultyColumn, isFilterFaulty } from "../faults";
import { FilterBar } from "../filter";
import { hasPages, SORTED_ROWS, type LogsRequest } from "../request";
import type { LogsScreenProps } from "../screen";
import { logsUrl } from "../url";
import { usePanel } from "../usePanel";
import { useChanges, useGridState, useRequest, useScope, useUnderstood, useUndo, type Changes } from "../useLogs";
import { useRows, type Rows } from "../useRows";
import { Bar, Live, Note } from "./Bar";
import { countWords, type BulkAction } from "./chosen";
import { Bulk, Facets, Groups, Histogram, Jobs, laterParts, Panel, VersionControl } from "./later";
import style from "./Logs.module.css";
import { RowsList } from "./Rows";

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

/** Whether a sort without pages has left rows out. */
const isCut = ({ sort }: { readonly sort: string }, count: number): boolean => !hasPages(sort) && count >= SORTED_ROWS;

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
      {state.group !== "" && (
        <Note action="Show without groups" onAction={() => change({ group: "" })}>
          Grouped by {state.group}
        </Note>
      )}
      {state.group === "" && isCut(state, count) && (
        <Note action="Newest first" onAction={() => change({ sort: "" })}>
          The first {SORTED_ROWS} by {column.toLowerCase()}
        </Note>
      )}
    </>
  );
}

interface BandsProps extends Pick<NotesProps, "state" | "change"> {
  readonly isChoosing: boolean;
  readonly onChoosing: (isChoosing: boolean) => void;
  readonly isFirst: boolean;
}

/** The version of the list if it is the past, and the jobs that run. */
function Bands({ state, change, isChoosing, onChoosing, isFirst }: BandsProps) {
  const { version } = state;
  return (
    <>
      {(version !== "" || isChoosing) && (
        <VersionControl {...{ version, isChoosing, onChoosing }} onVersion={(next) => change({ version: next })} />
      )}
      {!isFirst && <Jobs organization={state.organization} />}
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

/** What is open on the screen, and the keys that open and close it. */
function useOpened({ grid, undo, close, panel }: ReturnType<typeof useScreen>, isPast: boolean) {
  const [isFolded, setFolded] = useState(false);
  const [action, setAction] = useState<BulkAction>("none");
  const [isChoosing, setChoosing] = useState(false);
  const isOpen = panel !== null;
  const chooseVersion = (): void => setChoosing(true);
  const togglePanel = (): void => setFolded((before) => !before);
  useCommands(
    useMemo(
      () => logsCommands({ grid, undo, isOpen, isPast, close, act: setAction, chooseVersion, togglePanel }),
      [grid, undo, isOpen, isPast, close],
    ),
  );
  return { isFolded, isOpen, action, setAction, isChoosing, setChoosing };
}

/** Whether the facets are shown: at first where there is room. In a narrow window they would cover the list. */
function useFacets() {
  const shown = useState(() => matchMedia("(min-width: 75rem)").matches);
  useEffect(() => {
    const narrow = matchMedia("(max-width: 40rem)");
    const hide = (): void => shown[1]((isShown) => isShown && !narrow.matches);
    narrow.addEventListener("change", hide);
    return () => narrow.removeEventListener("change", hide);
  }, []);
  return shown;
}

export function Logs(props: LogsProps) {
  const { state, project, userId, TracePanel } = props;
  const screen = useScreen(props);
  const { changes, request, rows, found, grid, panel, open, live } = screen;
  const { isFolded, isOpen, action, setAction, isChoosing, setChoosing } = useOpened(screen, state.version !== "");
  const { change } = changes;
  const [hasFacets, setFacets] = useFacets();
  const hasMore = rows.hasMore || isCut(request, found.length);
  const scope = useScope(state.organization, request);
  const understood = useUnderstood(scope, !isFilterFaulty(rows.error));
  const explain = useExplain({ grid, scope: understood, onFilter: changes.addFilter });
  const isFirst = isHeldBack.value;
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
        onChooseVersion={() => setChoosing(true)}
        projectId={project.id}
        filter={<FilterBar scope={scope} onChange={changes.onFilter} />}
        range={<TimeRange value={state.range} onChange={(range) => change({ range })} />}
      />
      <div className={style["histogram"]}>
        {understood !== null && !isFirst && <Histogram scope={understood} onRange={(range) => change({ range })} onExplain={explain.ofRange} />}
      </div>
      <Bands {...{ state, change, isChoosing }} onChoosing={setChoosing} isFirst={isFirst} />
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
              {!isFirst && <Bulk {...{ place, grid, request, action, hasMore }} rows={found} onAction={setAction} />}
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
