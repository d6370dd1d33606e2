// The arithmetic of a grid: which rows are drawn, where columns stand, and what keys do.
import type { GridColumn, GridColumnPlace } from "./GridTypes";

/** How many rows may be left below before the next page is asked for. */
export const ROWS_LEFT = 40;

export const LEAST_WIDTH = 40;
export const MOST_WIDTH = 1600;

/** Rows from `first` up to `end`, without `end`. */
export interface Window {
  readonly first: number;
  readonly end: number;
}

/** Steps in which the window moves, so that most scrolling draws nothing. */
const STEP = 8;

/** The rows that are drawn: those in view, and half a screen above and below. */
export function windowOf(scrollTop: number, height: number, rowHeight: number, count: number): Window {
  const inView = Math.ceil(height / rowHeight);
  const spare = Math.ceil(inView / 2);
  const top = Math.floor(scrollTop / rowHeight);
  const first = Math.max(0, Math.floor((top - spare) / STEP) * STEP);
  const end = Math.min(count, Math.ceil((top + inView + spare) / STEP) * STEP);
  return { first: Math.min(first, Math.max(0, end - 1)), end };
}

/** The indexes of the drawn rows: the window, and the current row, which keeps the focus wherever it is. */
export function drawnRows({ first, end }: Window, current: number, count: number): readonly number[] {
  const inside = Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index);
  if (current < 0 || current >= count || (current >= first && current < end)) return inside;
  return current < first ? [current, ...inside] : [...inside, current];
}

/** Where the list has to be scrolled for a row to be in view; null if it is. */
export function scrollFor(index: number, scrollTop: number, height: number, rowHeight: number): number | null {
  const top = index * rowHeight;
  if (top < scrollTop) return top;
  const bottom = top + rowHeight;
  return bottom > scrollTop + height ? bottom - height : null;
}

/**
 * How far the list has to be scrolled after rows were put before those in view, so that these stay where they are.
 * `before` is the id of the first row in view, which was at `index`.
 */
export function shiftOf(ids: readonly string[], before: string | undefined, index: number): number {
  if (before === undefined || ids[index] === before) return 0;
  const at = ids.indexOf(before);
  return at < 0 ? 0 : at - index;
}

/** The tracks of the columns as CSS. A column that is being resized has another width. */
export function tracksOf<Row>(
  columns: readonly GridColumn<Row>[],
  draft: GridColumnPlace | null,
  isSelectable: boolean,
): string {
  const tracks = columns.map(({ id, width, grow }) => {
    if (draft?.id === id) return `${draft.width}px`;
    return grow === undefined ? `${width}px` : `minmax(${width}px, ${grow}fr)`;
  });
  const isGrowing = columns.some(({ id, grow }) => grow !== undefined && draft?.id !== id);
  return [...(isSelectable ? ["2rem"] : []), ...tracks, ...(isGrowing ? [] : ["minmax(0, 1fr)"])].join(" ");
}

export const limitedWidth = (width: number): number => Math.round(Math.min(Math.max(width, LEAST_WIDTH), MOST_WIDTH));

export const resized = <Row>(
  columns: readonly GridColumn<Row>[],
  id: string,
  width: number,
): readonly GridColumnPlace[] =>
  columns.map((column) => ({ id: column.id, width: column.id === id ? limitedWidth(width) : column.width }));

/** Puts a column in the place `index`, counted among all of them. */
export function reordered<Row>(
  columns: readonly GridColumn<Row>[],
  id: string,
  index: number,
): readonly GridColumnPlace[] {
  const places = columns.map((column) => ({ id: column.id, width: column.width }));
  const from = places.findIndex((place) => place.id === id);
  const [moved] = from < 0 ? [] : places.splice(from, 1);
  if (moved !== undefined) places.splice(Math.min(Math.max(index, 0), places.length), 0, moved);
  return places;
}

/** By how many rows a key moves; 0 for other keys. */
export function rowsOf(key: string, count: number, page: number): number {
  switch (key) {
    case "ArrowDown":
      return 1;
    case "ArrowUp":
      return -1;
    case "PageDown":
      return Math.max(1, page - 1);
    case "PageUp":
      return -Math.max(1, page - 1);
    case "Home":
      return -count;
    case "End":
      return count;
    default:
      return 0;
  }
}

/** The ids from one row to another, in either direction. */
export function between(ids: readonly string[], from: string | null, to: string): readonly string[] {
  const end = ids.indexOf(to);
  const start = from === null ? end : ids.indexOf(from);
  if (end < 0) return [];
  if (start < 0) return [to];
  return ids.slice(Math.min(start, end), Math.max(start, end) + 1);
}
