// The preview of a cell: it opens when the pointer rests on the cell, stays while the pointer is in it, and closes
// with any key.
import { useEffect, useRef, useState, type RefObject } from "react";
import style from "./Grid.module.css";
import type { GridProps } from "./GridTypes";

const REST_MS = 400;
const LEAVE_MS = 160;
const GAP = 4;

interface Shown {
  readonly row: string;
  readonly column: string;
  readonly at: DOMRect;
}

function cellOf(target: EventTarget | null): Shown | null {
  const cell = target instanceof Element ? target.closest<HTMLElement>("[role=gridcell][data-column]") : null;
  const row = cell?.closest<HTMLElement>("[data-row]")?.dataset["row"];
  const column = cell?.dataset["column"];
  if (cell === null || row === undefined || column === undefined) return null;
  return { row, column, at: cell.getBoundingClientRect() };
}

/** Follows where the pointer rests inside the grid. */
function useRest(grid: RefObject<HTMLElement | null>): readonly [Shown | null, () => void, () => void] {
  const [shown, setShown] = useState<Shown | null>(null);
  const timer = useRef(0);
  const hold = (): void => window.clearTimeout(timer.current);
  const close = (): void => setShown(null);
  useEffect(() => {
    const element = grid.current;
    if (element === null) return undefined;
    const later = (next: Shown | null, milliseconds: number): void => {
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => setShown(next), milliseconds);
    };
    const over = (event: globalThis.PointerEvent): void => {
      if (event.target instanceof Element && event.target.closest("[data-preview]") !== null) return;
      const cell = event.pointerType === "mouse" && event.buttons === 0 ? cellOf(event.target) : null;
      later(cell, cell === null ? LEAVE_MS : REST_MS);
    };
    const leave = (): void => later(null, LEAVE_MS);
    const hide = (): void => {
      window.clearTimeout(timer.current);
      setShown(null);
    };
    element.addEventListener("pointerover", over);
    element.addEventListener("pointerleave", leave);
    element.addEventListener("scroll", hide, { passive: true });
    element.addEventListener("pointerdown", hide);
    document.addEventListener("keydown", hide);
    return () => {
      window.clearTimeout(timer.current);
      element.removeEventListener("pointerover", over);
      element.removeEventListener("pointerleave", leave);
      element.removeEventListener("scroll", hide);
      element.removeEventListener("pointerdown", hide);
      document.removeEventListener("keydown", hide);
    };
  }, [grid]);
  return [shown, hold, close];
}

/** Puts the preview below the cell, or above it where there is more room, and within the window. */
function place(box: HTMLElement, at: DOMRect): void {
  const isBelow = at.bottom + box.offsetHeight + GAP <= window.innerHeight || at.top < window.innerHeight / 2;
  const top = isBelow ? at.bottom + GAP : Math.max(GAP, at.top - GAP - box.offsetHeight);
  box.style.top = `${top}px`;
  box.style.left = `${Math.max(GAP, Math.min(at.left, window.innerWidth - box.offsetWidth - GAP))}px`;
}

interface PreviewProps<Row> extends Pick<GridProps<Row>, "rows" | "rowId" | "columns"> {
  readonly grid: RefObject<HTMLElement | null>;
}

export function GridPreview<Row>({ rows, rowId, columns, grid }: PreviewProps<Row>) {
  const [shown, hold, close] = useRest(grid);
  const box = useRef<HTMLDivElement>(null);
  const row = shown === null ? undefined : rows.find((one) => rowId(one) === shown.row);
  const column = columns.find((one) => one.id === shown?.column);
  const content = row === undefined ? null : (column?.preview?.(row) ?? null);
  useEffect(() => {
    const element = box.current;
    if (element === null || shown === null) return;
    element.showPopover();
    place(element, shown.at);
  }, [shown]);
  if (content === null) return null;
  return (
    <div
      ref={box}
      popover="manual"
      data-preview=""
      className={style["preview"]}
      onPointerEnter={hold}
      onPointerLeave={close}
    >
      {content}
    </div>
  );
}
