// Which rows of the table are drawn, and how the focus moves from cell to cell.
import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent } from "react";
import { scrollFor, type Window } from "../../../design/GridLogic";
import type { CellKey } from "../queue";
import type { Desk } from "../useDesk";

/** The height of a row, in rem. */
export const ROW_REM = 11;

/** How many rows are drawn above and below those in view. */
const SPARE = 2;

const remOf = (): number => Number.parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;

const cellId = ({ row, variant }: CellKey): string => JSON.stringify([row, variant]);

const cellIn = (id: string | null): CellKey | null => {
  if (id === null) return null;
  const read: unknown = JSON.parse(id);
  if (!Array.isArray(read)) return null;
  const [row, variant] = read.map(String);
  return row === undefined || variant === undefined ? null : { row, variant };
};

/** How the rows and the columns change with a key; null for other keys. */
function stepOf({ key, ctrlKey, metaKey }: KeyboardEvent, rows: number, columns: number): readonly [number, number] | null {
  const isFar = ctrlKey || metaKey;
  switch (key) {
    case "ArrowDown":
      return [1, 0];
    case "ArrowUp":
      return [-1, 0];
    case "ArrowRight":
      return [0, 1];
    case "ArrowLeft":
      return [0, -1];
    case "PageDown":
      return [4, 0];
    case "PageUp":
      return [-4, 0];
    case "Home":
      return [isFar ? -rows : 0, -columns];
    case "End":
      return [isFar ? rows : 0, columns];
    default:
      return null;
  }
}

const within = (index: number, count: number): number => Math.min(Math.max(index, 0), count - 1);

/** The window of drawn rows, told to the runs so that rows in view run first. */
function useWindow(desk: Desk, height: number) {
  const scroller = useRef<HTMLDivElement>(null);
  const head = useRef<HTMLDivElement>(null);
  const count = desk.rows.all.length;
  const [shown, setShown] = useState<Window>({ first: 0, end: Math.min(count, 6) });
  const measure = (): void => {
    const element = scroller.current;
    if (element === null) return;
    const first = Math.floor(element.scrollTop / height);
    const end = Math.ceil((element.scrollTop + element.clientHeight) / height);
    const next = { first: Math.max(0, first - SPARE), end: Math.min(count, end + SPARE) };
    setShown((before) => (before.first === next.first && before.end === next.end ? before : next));
    desk.visible.current = desk.rows.all.slice(first, end).map(({ id }) => id);
  };
  useLayoutEffect(measure, [count, desk.rows.all]);
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [count]);
  return { scroller, head, shown, measure };
}

export function useTable(desk: Desk) {
  const [height] = useState(() => ROW_REM * remOf());
  const view = useWindow(desk, height);
  const { scroller, head, measure } = view;
  const rows = desk.rows.all.map(({ id }) => id);
  const variants = desk.playground.variants.map(({ id }) => id);
  const current = (): CellKey | null => {
    const cell = cellIn(desk.cursor.at.peek());
    return cell !== null && rows.includes(cell.row) && variants.includes(cell.variant) ? cell : null;
  };
  const focus = (cell: CellKey): void => {
    const element = scroller.current;
    if (element === null) return;
    desk.cursor.set(cellId(cell));
    const room = element.clientHeight - (head.current?.offsetHeight ?? 0);
    const to = scrollFor(rows.indexOf(cell.row), element.scrollTop, room, height);
    if (to !== null) element.scrollTop = to;
    measure();
    window.setTimeout(() => {
      const shown = element.querySelector<HTMLElement>("[data-current]");
      shown?.focus({ preventScroll: true });
      shown?.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
  };
  const step = (down: number, right: number): void => {
    const from = current();
    const row = rows[from === null ? 0 : within(rows.indexOf(from.row) + down, rows.length)];
    const variant = variants[from === null ? 0 : within(variants.indexOf(from.variant) + right, variants.length)];
    if (row !== undefined && variant !== undefined) focus({ row, variant });
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.target instanceof Element && event.target.closest("[role=gridcell]") === null) return;
    const cell = current();
    const by = stepOf(event, rows.length, variants.length);
    const isHeld = event.ctrlKey || event.metaKey;
    if (by !== null) step(...by);
    else if (cell !== null && event.key === "Enter" && !isHeld) desk.runs.start([cell]);
    else if (cell !== null && event.key === " ") desk.change(cell, "replace");
    else return;
    event.preventDefault();
  };
  return { ...view, height, current, focus, step, onKeyDown, idOf: cellId };
}

export type Table = ReturnType<typeof useTable>;
