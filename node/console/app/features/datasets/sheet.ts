// The state of the grid of cells: which cell keys act on, and which rows are selected.
import { computed, signal, type ReadonlySignal } from "@preact/signals";
import { createSelection, type Selection } from "../../lib/selection";
import type { Field } from "./cells";

export const COLUMNS = ["id", "input", "expected", "metadata", "tags", "created", "origin"] as const;

export type Column = (typeof COLUMNS)[number];

export const TITLES: Readonly<Record<Column, string>> = {
  id: "Id",
  input: "Input",
  expected: "Expected",
  metadata: "Metadata",
  tags: "Tags",
  created: "Created",
  origin: "Origin",
};

export interface Cell {
  readonly row: string;
  readonly column: Column;
}

export interface SheetActions {
  /** Makes a cell the current one, brings it into view and focuses it. */
  focus(cell: Cell | null): void;
}

export interface Sheet {
  readonly cursor: ReadonlySignal<Cell | null>;
  readonly selection: Selection;
  readonly actions: SheetActions;
  /** The column of the current cell if it is in a row; a signal of its own. */
  columnIn(row: string): ReadonlySignal<Column | null>;
  set(cell: Cell | null): void;
  /** For the grid alone. */
  readonly inner: { actions: SheetActions | null };
}

export function createSheet(): Sheet {
  const cursor = signal<Cell | null>(null);
  const inner: Sheet["inner"] = { actions: null };
  return {
    cursor,
    selection: createSelection(),
    inner,
    actions: { focus: (cell) => inner.actions?.focus(cell) },
    columnIn: (row) => computed(() => (cursor.value?.row === row ? cursor.value.column : null)),
    set: (cell) => {
      cursor.value = cell;
    },
  };
}

const clamped = (index: number, count: number): number => Math.min(Math.max(index, 0), count - 1);

/** The cell that is some rows and columns away, within the grid. */
export function movedCell(ids: readonly string[], from: Cell | null, down: number, right: number): Cell | null {
  const index = from === null ? -1 : ids.indexOf(from.row);
  const row = ids[index < 0 ? (down < 0 ? ids.length - 1 : 0) : clamped(index + down, ids.length)];
  if (row === undefined) return null;
  const column = COLUMNS[clamped(COLUMNS.indexOf(from?.column ?? "input") + right, COLUMNS.length)];
  return column === undefined ? null : { row, column };
}

export interface KeyPress {
  readonly key: string;
  readonly isMod: boolean;
}

/** How far a key moves, in rows and columns; null if it does not move. */
export function moveOf({ key, isMod }: KeyPress, count: number, page: number): readonly [number, number] | null {
  const columns = COLUMNS.length;
  switch (key) {
    case "ArrowDown":
      return [isMod ? count : 1, 0];
    case "ArrowUp":
      return [isMod ? -count : -1, 0];
    case "ArrowRight":
      return [0, isMod ? columns : 1];
    case "ArrowLeft":
      return [0, isMod ? -columns : -1];
    case "PageDown":
      return [Math.max(1, page - 1), 0];
    case "PageUp":
      return [-Math.max(1, page - 1), 0];
    case "Home":
      return [isMod ? -count : 0, -columns];
    case "End":
      return [isMod ? count : 0, columns];
    default:
      return null;
  }
}

/** The field of a cell that can be edited; null for the others. */
export const fieldOf = (column: Column): Field | null =>
  column === "input" || column === "expected" || column === "metadata" || column === "tags" ? column : null;
