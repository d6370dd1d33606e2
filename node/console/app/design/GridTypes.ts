// What a grid is told, and what the screen around it can ask it to do.
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { ReactNode } from "react";
import type { Command } from "../lib/commands";
import { createSelection, type Selection } from "../lib/selection";
import { createCursor, type Cursor } from "../lib/store";

export type Direction = "ascending" | "descending" | "none";

export interface GridColumn<Row> {
  readonly id: string;
  readonly title: string;
  /** In pixels: the width, and the least width of a column that grows. */
  readonly width: number;
  /** The share of the free space that the column takes; absent for none. */
  readonly grow?: number;
  readonly align?: "end";
  /** How the rows are sorted by this column; absent if they cannot be. */
  readonly sort?: Direction;
  readonly cell: (row: Row) => ReactNode;
  /** What is shown when the pointer rests on the cell; null for nothing. */
  readonly preview?: (row: Row) => ReactNode;
}

/** Where a person has put a column, and how wide it was made. */
export interface GridColumnPlace {
  readonly id: string;
  readonly width: number;
}

/** What the screen can ask a grid to do. Nothing happens while the grid is not shown. */
export interface GridActions {
  /** Moves the current row by some rows, with the focus. */
  move(by: number): void;
  /** Brings a row into view, and makes it the current one with the focus. */
  focus(id: string | null): void;
  open(): void;
  scrollToTop(): void;
}

/** The state of a grid that the screen shares: make it once, and keep it as long as the grid. */
export interface GridState {
  readonly cursor: Cursor;
  readonly selection: Selection;
  /** Whether the first row is in view. */
  readonly isAtTop: ReadonlySignal<boolean>;
  readonly actions: GridActions;
  /** For the grid alone. */
  readonly inner: { readonly isAtTop: Signal<boolean>; actions: GridActions | null };
}

export function createGridState(start: string | null = null): GridState {
  const isAtTop = signal(true);
  const inner: GridState["inner"] = { isAtTop, actions: null };
  return {
    cursor: createCursor(start),
    selection: createSelection(),
    isAtTop,
    inner,
    actions: {
      move: (by) => inner.actions?.move(by),
      focus: (id) => inner.actions?.focus(id),
      open: () => inner.actions?.open(),
      scrollToTop: () => inner.actions?.scrollToTop(),
    },
  };
}

/** The single-letter keys of a grid, for the screen to register. Arrows and the like work inside the grid anyway. */
export function gridCommands(state: GridState, group: string, noun: string): readonly Command[] {
  const hasCurrent = (): boolean => state.cursor.at.peek() !== null;
  const toggle = (): void => {
    const id = state.cursor.at.peek();
    if (id !== null) state.selection.toggle(id);
  };
  return [
    { id: `${group}.down`, title: `Next ${noun}`, group, keys: "j", run: () => state.actions.move(1) },
    { id: `${group}.up`, title: `Previous ${noun}`, group, keys: "k", run: () => state.actions.move(-1) },
    { id: `${group}.select`, title: `Select the ${noun}`, group, keys: "x", when: hasCurrent, run: toggle },
  ];
}

export interface GridProps<Row> {
  readonly label: string;
  readonly state: GridState;
  readonly rows: readonly Row[];
  readonly rowId: (row: Row) => string;
  /** The columns in order. Keep the list while it stays the same: each row is drawn again for another. */
  readonly columns: readonly GridColumn<Row>[];
  /** The number of all rows; absent if not all are loaded and nobody knows. */
  readonly total?: number | undefined;
  /** Opens a row: a click, or `enter`. */
  readonly onOpen: (row: Row) => void;
  /** Called with the id of a column whose head was chosen. */
  readonly onSort?: (column: string) => void;
  /** Called when columns were moved or resized, with all of them. Without it they are fixed. */
  readonly onColumns?: (places: readonly GridColumnPlace[]) => void;
  /** Called when 40 rows are left below: time for the next page. */
  readonly onEnd?: () => void;
  readonly isReadingMore?: boolean;
  /** Called when a cell is clicked with `alt`, to filter by its value, and with `shift` to exclude it. */
  readonly onCell?: (row: Row, column: string, isExcluded: boolean) => void;
  /** Whether rows can be selected; true by default. */
  readonly isSelectable?: boolean;
}
