// The head of a grid: titles that sort, are resized and are moved, by the pointer and by keys.
import { useRef, type KeyboardEvent, type PointerEvent, type RefObject } from "react";
import { classes } from "./classes";
import style from "./Grid.module.css";
import { limitedWidth, reordered, resized } from "./GridLogic";
import type { GridColumn, GridColumnPlace, GridProps, GridState } from "./GridTypes";
import { Icon } from "./Icon";

const KEY_STEP = 16;
/** How far the pointer has to go before a press becomes a drag. */
const DRAG_FROM = 5;

interface HeadProps<Row> extends Pick<GridProps<Row>, "columns" | "onSort" | "onColumns"> {
  readonly state: GridState;
  readonly ids: readonly string[];
  readonly isSelectable: boolean;
  readonly onDraft: (draft: GridColumnPlace | null) => void;
  /** Moves the focus from the head to the rows. */
  readonly onLeave: () => void;
}

const cellsOf = (head: HTMLElement | null): readonly HTMLElement[] => [
  ...(head?.querySelectorAll<HTMLElement>("[role=columnheader][data-column]") ?? []),
];

const buttonOf = (cell: Element | undefined): HTMLElement | null => cell?.querySelector("button") ?? null;

function widthOf(cell: Element | null): number {
  return cell === null ? 0 : Math.round(cell.getBoundingClientRect().width);
}

/** Follows the pointer until it is let go. */
function follow(
  event: PointerEvent<HTMLElement>,
  onMove: (x: number) => void,
  onEnd: (x: number, isDone: boolean) => void,
): void {
  const target = event.currentTarget;
  const { pointerId } = event;
  target.setPointerCapture(pointerId);
  const move = (moved: globalThis.PointerEvent): void => onMove(moved.clientX);
  const end = (ended: globalThis.PointerEvent): void => {
    target.removeEventListener("pointermove", move);
    target.removeEventListener("pointerup", end);
    target.removeEventListener("pointercancel", end);
    onEnd(ended.clientX, ended.type === "pointerup");
  };
  target.addEventListener("pointermove", move);
  target.addEventListener("pointerup", end);
  target.addEventListener("pointercancel", end);
}

interface HeadCellProps<Row> extends HeadProps<Row> {
  readonly column: GridColumn<Row>;
  readonly head: RefObject<HTMLDivElement | null>;
}

function startResize<Row>(event: PointerEvent<HTMLElement>, { column, columns, onDraft, onColumns }: HeadCellProps<Row>): void {
  event.preventDefault();
  event.stopPropagation();
  const start = widthOf(event.currentTarget.parentElement);
  const from = event.clientX;
  const width = (x: number): number => limitedWidth(start + x - from);
  follow(
    event,
    (x) => onDraft({ id: column.id, width: width(x) }),
    (x, isDone) => {
      onDraft(null);
      if (isDone && x !== from) onColumns?.(resized(columns, column.id, width(x)));
    },
  );
}

/** The place in which a column lands that is let go at a point. */
function placeAt(head: HTMLElement | null, x: number, id: string): number {
  const others = cellsOf(head).filter((cell) => cell.dataset["column"] !== id);
  return others.filter((cell) => {
    const at = cell.getBoundingClientRect();
    return at.left + at.width / 2 < x;
  }).length;
}

function startMove<Row>(event: PointerEvent<HTMLElement>, props: HeadCellProps<Row>, drag: RefObject<boolean>): void {
  const { column, columns, head, onColumns } = props;
  drag.current = false;
  if (onColumns === undefined || event.button !== 0 || event.pointerType === "touch") return;
  const cell = event.currentTarget.parentElement;
  const from = event.clientX;
  follow(
    event,
    (x) => {
      if (Math.abs(x - from) < DRAG_FROM && drag.current !== true) return;
      drag.current = true;
      if (cell !== null) cell.style.transform = `translateX(${x - from}px)`;
    },
    (x, isDone) => {
      if (cell !== null) cell.style.transform = "";
      if (isDone && drag.current === true) onColumns(reordered(columns, column.id, placeAt(head.current, x, column.id)));
    },
  );
}

function onHeadKey<Row>(event: KeyboardEvent<HTMLElement>, props: HeadCellProps<Row>): void {
  const { column, columns, head, onColumns, onLeave } = props;
  const cells = cellsOf(head.current);
  const index = columns.indexOf(column);
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (event.key === "ArrowDown") onLeave();
  else if (by === 0) return;
  else if (event.altKey && event.shiftKey) {
    onColumns?.(reordered(columns, column.id, index + by));
    const id = column.id;
    window.setTimeout(() => buttonOf(cellsOf(head.current).find((cell) => cell.dataset["column"] === id))?.focus());
  } else if (event.altKey) {
    const width = widthOf(event.currentTarget.parentElement);
    onColumns?.(resized(columns, column.id, width + by * KEY_STEP));
  } else buttonOf(cells[index + by])?.focus();
  event.preventDefault();
  event.stopPropagation();
}

function HeadCell<Row>(props: HeadCellProps<Row>) {
  const { column, onSort, onColumns } = props;
  const drag = useRef(false);
  const sorted = column.sort ?? "none";
  const isSorting = column.sort !== undefined && onSort !== undefined;
  const ways = onColumns === undefined ? "" : "\nAlt and arrows: width. Shift, alt and arrows: place.";
  return (
    <div
      role="columnheader"
      data-column={column.id}
      aria-sort={column.sort === undefined ? undefined : sorted}
      className={classes(style["headCell"], column.align === "end" && style["number"])}
    >
      <button
        type="button"
        tabIndex={-1}
        className={style["sort"]}
        title={(isSorting ? `Sort by ${column.title}` : column.title) + ways}
        onClick={() => {
          if (!drag.current && isSorting) onSort(column.id);
        }}
        onPointerDown={(event) => startMove(event, props, drag)}
        onKeyDown={(event) => onHeadKey(event, props)}
      >
        <span className={style["title"]}>{column.title}</span>
        {sorted !== "none" && <Icon name={sorted === "ascending" ? "up" : "down"} />}
      </button>
      {onColumns !== undefined && (
        <span className={style["handle"]} aria-hidden="true" onPointerDown={(event) => startResize(event, props)} />
      )}
    </div>
  );
}

function SelectAll({ state, ids }: { readonly state: GridState; readonly ids: readonly string[] }) {
  const selected = state.selection.ids.value;
  const isAll = ids.length > 0 && ids.every((id) => selected.has(id));
  return (
    <div role="columnheader" className={style["select"]}>
      <input
        type="checkbox"
        tabIndex={-1}
        aria-label="Select all loaded rows"
        checked={isAll}
        ref={(element) => {
          if (element !== null) element.indeterminate = !isAll && selected.size > 0;
        }}
        onChange={() => (isAll ? state.selection.clear() : state.selection.set(ids))}
      />
    </div>
  );
}

export function GridHead<Row>(props: HeadProps<Row>) {
  const head = useRef<HTMLDivElement>(null);
  return (
    <div ref={head} role="row" aria-rowindex={1} className={style["head"]}>
      {props.isSelectable && <SelectAll state={props.state} ids={props.ids} />}
      {props.columns.map((column) => (
        <HeadCell key={column.id} {...props} column={column} head={head} />
      ))}
    </div>
  );
}

/** Moves the focus to the first head of a grid. */
export const focusHead = (grid: HTMLElement | null): void => buttonOf(cellsOf(grid)[0])?.focus();
