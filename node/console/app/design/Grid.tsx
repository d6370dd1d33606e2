// A table of any length: it draws what is in view, has one tab stop, and is moved through by keys.
//
// Arrows, Home, End, PageUp and PageDown move; `enter` opens; `shift` with arrows and `ctrl A` select. The arrow up
// leads from the first row to the heads, where `alt` with arrows resizes a column and `shift alt` moves it.
import { useEffect, useLayoutEffect, useMemo, type KeyboardEvent, type MouseEvent } from "react";
import { moved } from "../lib/store";
import { classes } from "./classes";
import style from "./Grid.module.css";
import { focusHead, GridHead } from "./GridHead";
import { between, drawnRows, ROWS_LEFT, rowsOf, tracksOf } from "./GridLogic";
import { GridPreview } from "./GridPreview";
import { GridRow } from "./GridRow";
import type { GridProps } from "./GridTypes";
import { useRowHeight, useScroll, type Scroll } from "./GridScroll";

/** The row and the column of an event inside a grid. */
function cellAt(target: EventTarget | null): { readonly row: string; readonly column: string } | null {
  if (!(target instanceof Element)) return null;
  const row = target.closest<HTMLElement>("[data-row]")?.dataset["row"];
  if (row === undefined) return null;
  return { row, column: target.closest<HTMLElement>("[data-column]")?.dataset["column"] ?? "" };
}

const isControl = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest("a, button, input, select, textarea, summary") !== null;

/** Selects by a click or a key as lists do everywhere, and tells whether it did. */
function selects<Row>({ state }: GridProps<Row>, ids: readonly string[], id: string, event: MouseEvent): boolean {
  if (event.shiftKey) state.selection.add(between(ids, state.cursor.at.peek(), id));
  else if (event.ctrlKey || event.metaKey) state.selection.toggle(id);
  else return false;
  return true;
}

function onClick<Row>(event: MouseEvent<HTMLElement>, props: GridProps<Row>, scroll: Scroll): void {
  const { rows, rowId, state, onOpen, onCell, isSelectable = true } = props;
  const at = cellAt(event.target);
  const row = rows.find((one) => rowId(one) === at?.row);
  if (at === null || row === undefined || isControl(event.target)) return;
  if (event.altKey && onCell !== undefined && at.column !== "") {
    event.preventDefault();
    onCell(row, at.column, event.shiftKey);
    return;
  }
  if (window.getSelection()?.isCollapsed === false && !event.shiftKey) return;
  const isSelecting = isSelectable && selects(props, rows.map(rowId), at.row, event);
  if (event.shiftKey) window.getSelection()?.removeAllRanges();
  state.cursor.set(at.row);
  scroll.focus(at.row);
  if (!isSelecting) onOpen(row);
}

function onKeyDown<Row>(event: KeyboardEvent<HTMLElement>, props: GridProps<Row>, scroll: Scroll): void {
  const { rows, rowId, state, onOpen, isSelectable = true } = props;
  if (!(event.target instanceof HTMLElement) || event.target.role !== "row" || event.altKey) return;
  const ids = rows.map(rowId);
  const current = state.cursor.at.peek();
  const isMod = event.ctrlKey || event.metaKey;
  const by = isMod ? 0 : rowsOf(event.key, ids.length, scroll.page());
  const wanted = current ?? event.target.dataset["row"];
  const row = rows.find((one) => rowId(one) === wanted);
  if (event.key === "Enter" && row !== undefined) onOpen(row);
  else if (event.key === " " && current !== null && isSelectable) state.selection.toggle(current);
  else if (isMod && event.key.toLowerCase() === "a" && isSelectable) state.selection.set(ids);
  else if (event.key === "ArrowLeft" || event.key === "ArrowRight") scroll.sideways(event.key === "ArrowLeft" ? -1 : 1);
  else if (by !== 0) {
    const next = moved(ids, current, by);
    if (event.key === "ArrowUp" && next === current) focusHead(scroll.element.current);
    else if (event.shiftKey && isSelectable && next !== null) state.selection.add(between(ids, current, next));
    if (next !== current) scroll.focus(next);
  } else return;
  event.preventDefault();
}

/** Lets the screen around the grid move in it. */
function useActions<Row>(props: GridProps<Row>, scroll: Scroll): void {
  const { state, rows, rowId, onOpen } = props;
  useLayoutEffect(() => {
    state.inner.actions = {
      move: (by) => scroll.focus(moved(rows.map(rowId), state.cursor.at.peek(), by)),
      focus: (id) => scroll.focus(id ?? state.cursor.at.peek() ?? rows.map(rowId)[0] ?? null),
      open: () => {
        const row = rows.find((one) => rowId(one) === state.cursor.at.peek());
        if (row !== undefined) onOpen(row);
      },
      scrollToTop: () => scroll.element.current?.scrollTo({ top: 0 }),
    };
  });
  useEffect(
    () => () => {
      state.inner.actions = null;
    },
    [state],
  );
}

/** Asks for the next page when few rows are left. */
function useEnd<Row>({ rows, onEnd }: GridProps<Row>, end: number): void {
  const isNear = end >= rows.length - ROWS_LEFT;
  useEffect(() => {
    if (isNear) onEnd?.();
  }, [isNear, rows.length, onEnd]);
}

export function Grid<Row>(props: GridProps<Row>) {
  const { label, state, rows, rowId, columns, total, isReadingMore = false, isSelectable = true } = props;
  const rowHeight = useRowHeight();
  const ids = useMemo(() => rows.map(rowId), [rows, rowId]);
  const scroll = useScroll(state, ids, rowHeight);
  const current = ids.indexOf(state.cursor.at.peek() ?? "");
  useActions(props, scroll);
  useEnd(props, scroll.window.end);
  useLayoutEffect(() => scroll.setTracks(tracksOf(columns, null, isSelectable)), [columns, isSelectable, scroll]);
  const least = columns.reduce((sum, column) => sum + column.width, isSelectable ? 32 : 0);
  return (
    <div
      ref={scroll.element}
      role="grid"
      aria-label={label}
      aria-rowcount={total === undefined ? -1 : total + 1}
      aria-colcount={columns.length + (isSelectable ? 1 : 0)}
      aria-multiselectable={isSelectable}
      aria-busy={isReadingMore}
      className={style["grid"]}
      onScroll={scroll.onScroll}
      onClick={(event) => onClick(event, props, scroll)}
      onKeyDown={(event) => onKeyDown(event, props, scroll)}
    >
      <div role="rowgroup" className={style["heads"]} style={{ minWidth: `${least}px` }}>
        <GridHead
          {...props}
          ids={ids}
          isSelectable={isSelectable}
          onDraft={(draft) => scroll.setTracks(tracksOf(columns, draft, isSelectable))}
          onLeave={() => scroll.focus(ids[current] ?? ids[0] ?? null)}
        />
      </div>
      <div
        role="rowgroup"
        className={style["rows"]}
        style={{ height: `${(rows.length + (isReadingMore ? 3 : 0)) * rowHeight}px`, minWidth: `${least}px` }}
      >
        {drawnRows(scroll.window, current, rows.length).map((index) => {
          const row = rows[index];
          const id = ids[index];
          return row === undefined || id === undefined ? null : (
            <GridRow
              key={id}
              {...{ row, id, index, columns, state, isSelectable }}
              top={index * rowHeight}
              isFirstStop={index === 0 && current < 0}
              wanted={scroll.wanted}
            />
          );
        })}
        {isReadingMore && <MoreRows top={rows.length * rowHeight} />}
      </div>
      <GridPreview {...props} grid={scroll.element} />
    </div>
  );
}

/** Bars at the end, while the next page is read. */
function MoreRows({ top }: { readonly top: number }) {
  return [0, 1, 2].map((line) => (
    <div key={line} aria-hidden="true" className={classes(style["row"], style["more"])} style={{ top: `calc(${top}px + ${line} * var(--row))` }}>
      <span className={style["bar"]} />
    </div>
  ));
}
