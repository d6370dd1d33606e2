// The grid of cells: it draws the rows in view, has one tab stop, and is edited in place.
//
// Arrows, Home, End, PageUp and PageDown move; `enter` opens a cell; `shift` with arrows and `ctrl A` select rows;
// `delete` empties the cell; what is copied and pasted is text with tabs, as spreadsheets have it.
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type ClipboardEvent, type KeyboardEvent, type MouseEvent, type RefObject } from "react";
import type { DatasetRow } from "../../../api/datasets";
import { between, drawnRows, ROWS_LEFT, scrollFor, shiftOf, windowOf, type Window } from "../../../design/GridLogic";
import { useRowHeight } from "../../../design/GridScroll";
import { COLUMNS, moveOf, movedCell, type Cell, type Column, type Sheet as SheetState } from "../sheet";
import style from "./Sheet.module.css";
import { SheetHead, SheetRow, type RowContext } from "./SheetRow";

const HEAD = 28;

export interface SheetProps {
  readonly label: string;
  readonly rows: readonly DatasetRow[];
  /** The number of all rows; undefined if nobody knows. */
  readonly total: number | undefined;
  readonly context: Omit<RowContext, "wanted">;
  readonly isReadingMore: boolean;
  readonly onEnd: () => void;
  /** Opens a cell, which is at a place. */
  readonly onOpen: (cell: Cell, at: DOMRect) => void;
  /** Called with what to do to the current cell. */
  readonly onEmpty: (cell: Cell) => void;
  readonly onPaste: (text: string, cell: Cell | null) => void;
  /** Returns the text of the current cell or of the selected rows. */
  readonly onCopy: (cell: Cell) => string | null;
}

const isColumn = (text: string | undefined): text is Column => COLUMNS.some((column) => column === text);

function cellAt(target: EventTarget | null): Cell | null {
  if (!(target instanceof Element)) return null;
  const row = target.closest<HTMLElement>("[data-row]")?.dataset["row"];
  const column = target.closest<HTMLElement>("[data-column]")?.dataset["column"];
  return row === undefined || !isColumn(column) ? null : { row, column };
}

const sameCell = (a: Cell | null, b: Cell | null): boolean => a?.row === b?.row && a?.column === b?.column;

interface View {
  readonly element: RefObject<HTMLDivElement | null>;
  readonly window: Window;
  readonly wanted: RefObject<boolean>;
  /** The cell that was the current one when the pointer went down. */
  readonly pressed: RefObject<Cell | null>;
  readonly measure: () => void;
  readonly focus: (cell: Cell | null) => void;
  readonly page: () => number;
}

const sameWindow = (a: Window, b: Window): boolean => a.first === b.first && a.end === b.end;

function findCell(grid: HTMLElement | null, cell: Cell): HTMLElement | null {
  const rows = [...(grid?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
  const row = rows.find((one) => one.dataset["row"] === cell.row);
  return row?.querySelector<HTMLElement>(`[data-column="${cell.column}"]`) ?? null;
}

/** What scrolls and focuses. It reads where things are when it is called. */
function useView(sheet: SheetState, ids: readonly string[], rowHeight: number): View {
  const element = useRef<HTMLDivElement>(null);
  const wanted = useRef(false);
  const pressed = useRef<Cell | null>(null);
  const places = useRef({ ids, rowHeight });
  places.current = { ids, rowHeight };
  const [window, setWindow] = useState<Window>({ first: 0, end: Math.min(ids.length, 40) });
  const actions = useMemo(() => {
    const height = (): number => Math.max(0, (element.current?.clientHeight ?? 0) - HEAD);
    const measure = (): void => {
      const grid = element.current;
      if (grid === null) return;
      const next = windowOf(grid.scrollTop, height(), places.current.rowHeight, places.current.ids.length);
      setWindow((before) => (sameWindow(before, next) ? before : next));
    };
    const focus = (cell: Cell | null): void => {
      const grid = element.current;
      const index = cell === null ? -1 : places.current.ids.indexOf(cell.row);
      if (grid === null || cell === null || index < 0) return;
      const to = scrollFor(index, grid.scrollTop, height(), places.current.rowHeight);
      if (to !== null) grid.scrollTop = to;
      measure();
      wanted.current = true;
      sheet.set(cell);
      const found = findCell(grid, cell);
      if (found === null) return;
      wanted.current = false;
      found.focus({ preventScroll: true });
      found.scrollIntoView({ block: "nearest", inline: "nearest" });
    };
    return { measure, focus, page: () => Math.floor(height() / places.current.rowHeight) };
  }, [sheet]);
  useLayoutEffect(() => actions.measure(), [actions, ids, rowHeight]);
  useEffect(() => {
    const grid = element.current;
    if (grid === null) return undefined;
    const observer = new ResizeObserver(() => actions.measure());
    observer.observe(grid);
    sheet.inner.actions = actions;
    return () => {
      observer.disconnect();
      sheet.inner.actions = null;
    };
  }, [actions, sheet]);
  return useMemo(() => ({ element, wanted, pressed, window, ...actions }), [window, actions]);
}

/** Keeps the rows in view where they are when others come before them. */
function useStablePlace(element: RefObject<HTMLDivElement | null>, ids: readonly string[], rowHeight: number): void {
  const before = useRef(ids);
  useLayoutEffect(() => {
    const grid = element.current;
    const old = before.current;
    before.current = ids;
    if (grid === null || old === ids || grid.scrollTop < 1) return;
    const index = Math.floor(grid.scrollTop / rowHeight);
    grid.scrollTop += shiftOf(ids, old[index], index) * rowHeight;
  }, [element, ids, rowHeight]);
}

function onKeyDown(event: KeyboardEvent<HTMLElement>, props: SheetProps, ids: readonly string[], view: View): void {
  const { sheet } = props.context;
  if (!(event.target instanceof HTMLElement) || event.target.role !== "gridcell" || event.altKey) return;
  const cell = sheet.cursor.peek() ?? cellAt(event.target);
  const isMod = event.ctrlKey || event.metaKey;
  const move = moveOf({ key: event.key, isMod }, ids.length, view.page());
  if (move !== null) {
    const next = movedCell(ids, cell, move[0], move[1]);
    if (event.shiftKey && next !== null && move[0] !== 0) sheet.selection.add(between(ids, cell?.row ?? null, next.row));
    view.focus(next);
  } else if ((event.key === "Enter" || event.key === "F2") && !isMod && cell !== null) {
    props.onOpen(cell, event.target.getBoundingClientRect());
  } else if (event.key === " " && cell !== null) sheet.selection.toggle(cell.row);
  else if (isMod && event.key.toLowerCase() === "a") sheet.selection.set(ids);
  else if ((event.key === "Delete" || event.key === "Backspace") && cell !== null && !isMod) props.onEmpty(cell);
  else if (event.key === "Escape" && sheet.selection.ids.peek().size > 0) sheet.selection.clear();
  else return;
  event.preventDefault();
}

/** Opens a cell that was the current one before it was pressed, and makes any other the current one. */
function onClick(event: MouseEvent<HTMLElement>, props: SheetProps, ids: readonly string[], view: View): void {
  const { sheet } = props.context;
  const cell = cellAt(event.target);
  if (cell === null || (event.target instanceof Element && event.target.closest("a, input") !== null)) return;
  const before = view.pressed.current;
  if (event.shiftKey) sheet.selection.add(between(ids, before?.row ?? null, cell.row));
  else if (event.ctrlKey || event.metaKey) sheet.selection.toggle(cell.row);
  else if (sameCell(before, cell) || cell.column === "id") {
    view.focus(cell);
    const found = findCell(view.element.current, cell);
    if (found !== null) props.onOpen(cell, found.getBoundingClientRect());
    return;
  }
  view.focus(cell);
}

function onClipboard(event: ClipboardEvent<HTMLElement>, props: SheetProps): void {
  const cell = props.context.sheet.cursor.peek();
  if (event.type === "paste") {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (text === "" || !props.context.isEditable) return;
    props.onPaste(text, cell);
  } else {
    if (cell === null || window.getSelection()?.isCollapsed === false) return;
    const text = props.onCopy(cell);
    if (text === null) return;
    event.clipboardData?.setData("text/plain", text);
  }
  event.preventDefault();
}

interface BodyProps {
  readonly rows: readonly DatasetRow[];
  readonly current: number;
  readonly rowHeight: number;
  readonly window: Window;
  readonly context: RowContext;
  readonly isReadingMore: boolean;
}

/** The rows in view, and the current one wherever it is. */
function Body({ rows, current, rowHeight, window, context, isReadingMore }: BodyProps) {
  const height = (rows.length + (isReadingMore ? 1 : 0)) * rowHeight;
  return (
    <div role="rowgroup" className={style["rows"]} style={{ height: `${height}px` }}>
      {drawnRows(window, current, rows.length).map((index) => {
        const row = rows[index];
        return row === undefined ? null : (
          <SheetRow
            key={row.id}
            row={row}
            index={index}
            top={index * rowHeight}
            isFirstStop={index === 0 && current < 0}
            context={context}
          />
        );
      })}
      {isReadingMore && (
        <div aria-hidden="true" className={style["reading"]} style={{ top: `${rows.length * rowHeight}px` }}>
          Reading more rows
        </div>
      )}
    </div>
  );
}

export function Sheet(props: SheetProps) {
  const { label, rows, total, context, isReadingMore, onEnd } = props;
  const rowHeight = useRowHeight();
  const ids = useMemo(() => rows.map((row) => row.id), [rows]);
  const view = useView(context.sheet, ids, rowHeight);
  useStablePlace(view.element, ids, rowHeight);
  const whole = useMemo(() => ({ ...context, wanted: view.wanted }), [context, view.wanted]);
  const isNearEnd = view.window.end >= rows.length - ROWS_LEFT;
  useEffect(() => {
    if (isNearEnd) onEnd();
  }, [isNearEnd, rows.length, onEnd]);
  const current = ids.indexOf(context.sheet.cursor.peek()?.row ?? "");
  return (
    <div
      ref={view.element}
      role="grid"
      aria-label={label}
      aria-rowcount={total === undefined ? -1 : total + 1}
      aria-colcount={COLUMNS.length + 1}
      aria-multiselectable
      aria-readonly={!context.isEditable}
      aria-busy={isReadingMore}
      className={style["sheet"]}
      onScroll={view.measure}
      onClick={(event) => onClick(event, props, ids, view)}
      onPointerDown={() => {
        view.pressed.current = context.sheet.cursor.peek();
      }}
      onFocus={(event) => {
        const cell = cellAt(event.target);
        if (cell !== null && !sameCell(cell, context.sheet.cursor.peek())) context.sheet.set(cell);
      }}
      onKeyDown={(event) => onKeyDown(event, props, ids, view)}
      onCopy={(event) => onClipboard(event, props)}
      onPaste={(event) => onClipboard(event, props)}
    >
      <div role="rowgroup" className={style["heads"]}>
        <SheetHead />
      </div>
      <Body {...{ rows, current, rowHeight, isReadingMore }} window={view.window} context={whole} />
    </div>
  );
}
