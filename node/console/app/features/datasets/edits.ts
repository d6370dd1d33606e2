// The edits of a dataset that are not saved yet, with undo and redo. A reducer without side effects.
import type { DatasetRow } from "../../api/datasets";
import type { Fields } from "../../api/narrow";
import { isSame, type Field } from "./cells";

export type Values = Readonly<Partial<Record<Field, unknown>>>;

/** What was changed in a row. */
export interface EditedRow {
  /** The row as it was when it was first edited; null for a new row. */
  readonly base: DatasetRow | null;
  readonly values: Values;
}

export interface Edits {
  readonly rows: ReadonlyMap<string, EditedRow>;
  /** The ids of the new rows, in the order in which they are shown. */
  readonly added: readonly string[];
}

export interface History {
  readonly past: readonly Edits[];
  readonly present: Edits;
  readonly future: readonly Edits[];
}

export interface NewRow {
  readonly id: string;
  readonly values: Values;
}

export interface CellEdit {
  readonly id: string;
  /** The row as it is read; null for a new one. */
  readonly base: DatasetRow | null;
  readonly field: Field;
  readonly value: unknown;
}

export type EditAction =
  | { readonly kind: "set"; readonly cells: readonly CellEdit[] }
  | { readonly kind: "add"; readonly rows: readonly NewRow[] }
  | { readonly kind: "drop"; readonly ids: readonly string[] }
  | { readonly kind: "settle"; readonly edits: Edits }
  | { readonly kind: "saved"; readonly edits: Edits }
  | { readonly kind: "undo" }
  | { readonly kind: "redo" }
  | { readonly kind: "clear" };

const MOST_STEPS = 200;

export const NO_EDITS: Edits = { rows: new Map(), added: [] };

export const NO_HISTORY: History = { past: [], present: NO_EDITS, future: [] };

function without(values: Values, field: Field): Values {
  const { [field]: _, ...rest } = values;
  return rest;
}

/** A row after one of its cells was set; null if nothing of it is changed any more. */
function withCell(row: EditedRow | undefined, { base, field, value }: CellEdit): EditedRow | null {
  const known = row ?? { base, values: {} };
  if (known.base === null) return { ...known, values: { ...known.values, [field]: value } };
  const isBack = isSame(known.base[field], value);
  const values = isBack ? without(known.values, field) : { ...known.values, [field]: value };
  return Object.keys(values).length === 0 ? null : { ...known, values };
}

function withCells(edits: Edits, cells: readonly CellEdit[]): Edits {
  const rows = new Map(edits.rows);
  for (const cell of cells) {
    const row = withCell(rows.get(cell.id), cell);
    if (row === null) rows.delete(cell.id);
    else rows.set(cell.id, row);
  }
  return { ...edits, rows };
}

function withRows(edits: Edits, added: readonly NewRow[]): Edits {
  const rows = new Map(edits.rows);
  for (const { id, values } of added) rows.set(id, { base: null, values });
  return { rows, added: [...new Set([...added.map((row) => row.id), ...edits.added])] };
}

function withoutRows(edits: Edits, ids: readonly string[]): Edits {
  const dropped = new Set(ids);
  const rows = new Map([...edits.rows].filter(([id]) => !dropped.has(id)));
  return { rows, added: edits.added.filter((id) => !dropped.has(id)) };
}

/** What is left after some edits were saved: those that were made meanwhile. */
function unsaved(edits: Edits, saved: Edits): Edits {
  const rows = new Map([...edits.rows].filter(([id, row]) => saved.rows.get(id) !== row));
  return { rows, added: edits.added.filter((id) => rows.has(id)) };
}

function done(history: History, present: Edits): History {
  if (present === history.present) return history;
  return { past: [...history.past, history.present].slice(-MOST_STEPS), present, future: [] };
}

export function edited(history: History, action: EditAction): History {
  const { past, present, future } = history;
  switch (action.kind) {
    case "set":
      return action.cells.length === 0 ? history : done(history, withCells(present, action.cells));
    case "add":
      return action.rows.length === 0 ? history : done(history, withRows(present, action.rows));
    case "drop":
      return action.ids.some((id) => present.rows.has(id)) ? done(history, withoutRows(present, action.ids)) : history;
    case "clear":
      return present.rows.size === 0 ? history : done(history, NO_EDITS);
    case "settle":
      return done(history, action.edits);
    case "saved":
      return { past: [], present: unsaved(present, action.edits), future: [] };
    case "undo": {
      const before = past.at(-1);
      return before === undefined ? history : { past: past.slice(0, -1), present: before, future: [present, ...future] };
    }
    case "redo": {
      const [next, ...rest] = future;
      return next === undefined ? history : { past: [...past, present], present: next, future: rest };
    }
  }
}

/** How many cells of existing rows are changed, and how many rows are new. */
export function counted(edits: Edits): { readonly cells: number; readonly rows: number } {
  let cells = 0;
  for (const row of edits.rows.values()) if (row.base !== null) cells += Object.keys(row.values).length;
  return { cells, rows: edits.added.length };
}

function eventOf(id: string, { base, values }: EditedRow): Fields {
  if (base === null) return { id, ...values };
  const paths = Object.keys(values).map((field) => [field]);
  return { id, _is_merge: true, _merge_paths: paths, ...values };
}

/**
 * The rows to write. The server shows the newest first, so that new rows go last to first and keep the order in which
 * they are shown.
 */
export function eventsOf(edits: Edits): readonly Fields[] {
  const added = new Set(edits.added);
  const changed = [...edits.rows].filter(([id]) => !added.has(id)).map(([id, row]) => eventOf(id, row));
  const fresh = edits.added.flatMap((id) => {
    const row = edits.rows.get(id);
    return row === undefined ? [] : [eventOf(id, row)];
  });
  return [...changed, ...fresh.reverse()];
}

/** The value of a cell with its edit. */
export const valueOf = (row: DatasetRow, edit: EditedRow | undefined, field: Field): unknown =>
  edit !== undefined && field in edit.values ? (edit.values[field] ?? null) : row[field];

/** A new row as rows are shown. */
export const newRow = (id: string): DatasetRow => ({
  id,
  input: null,
  expected: null,
  metadata: null,
  tags: null,
  created: null,
  origin: null,
  transaction: "",
  place: "",
  isMatch: true,
});
