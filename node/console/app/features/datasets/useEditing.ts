// What can be done to the cells and rows of an open dataset.
import { useMemo } from "react";
import { readRowsById, type DatasetRow } from "../../api/datasets";
import { problemOf } from "../../lib/errors";
import { toast } from "../../design/Toast";
import { useLatest } from "../../lib/commands";
import { exactCount } from "../../lib/numbers";
import { announce } from "../../lib/store";
import { faultOf, hasCut, isCut, lineOf, readCell, tagsOf, textOf, type CellKind, type Field } from "./cells";
import { valueOf, type CellEdit } from "./edits";
import { newId } from "./ids";
import { copiedCell, copiedRows, pasted, pastedValue, pastedWords, textFields } from "./pasting";
import type { DatasetPlace } from "./queries";
import { COLUMNS, fieldOf, movedCell, type Cell, type Column, type Sheet } from "./sheet";
import type { EditStore } from "./store";

export interface EditingOptions {
  readonly place: DatasetPlace;
  readonly store: EditStore;
  readonly sheet: Sheet;
  /** The rows as they are shown, without their edits. */
  readonly rows: readonly DatasetRow[];
  readonly isEditable: boolean;
}

const failed = (what: string, error: unknown): void => toast(`${what} ${problemOf(error, 0).text}`, true);

/** The row with whole values: rows of lists may have cut ones. */
export async function wholeRow({ organization, id }: DatasetPlace, row: DatasetRow): Promise<DatasetRow> {
  if (!hasCut(row)) return row;
  const [whole] = await readRowsById(organization, id, [row.id]);
  if (whole === undefined) throw new Error("The row is not there any more.");
  return whole;
}

function useParts({ place, store, sheet, rows }: EditingOptions) {
  const byId = useMemo(() => new Map(rows.map((row) => [row.id, row])), [rows]);
  const editOf = (id: string) => store.history.peek().present.rows.get(id);
  const baseOf = (row: DatasetRow): DatasetRow | null => {
    const edit = editOf(row.id);
    return edit === undefined ? row : edit.base;
  };
  const set = (cells: readonly CellEdit[]): void => store.dispatch({ kind: "set", cells });
  const selected = (): readonly DatasetRow[] => rows.filter((row) => sheet.selection.ids.peek().has(row.id));
  /** The whole value of a cell, with its edit. */
  const whole = async (row: DatasetRow, field: Field): Promise<unknown> => {
    const value = valueOf(row, editOf(row.id), field);
    return isCut(value) ? (await wholeRow(place, row))[field] : value;
  };
  return { byId, editOf, baseOf, set, selected, whole };
}

type Parts = ReturnType<typeof useParts>;

/** Copies a value down: the first of the selected rows to the others, else the row above to the current one. */
async function fillDown({ rows, sheet }: EditingOptions, parts: Parts): Promise<void> {
  const cell = sheet.cursor.peek();
  const field = cell === null ? null : fieldOf(cell.column);
  if (cell === null || field === null) return;
  const selected = parts.selected();
  const index = rows.findIndex((row) => row.id === cell.row);
  const [source, ...targets] = selected.length > 1 ? selected : rows.slice(Math.max(0, index - 1), index + 1);
  if (source === undefined || targets.length === 0) return;
  const value = await parts.whole(source, field);
  parts.set(targets.map((row) => ({ id: row.id, base: parts.baseOf(row), field, value })));
  announce(targets.length === 1 ? "1 cell filled" : `${exactCount(targets.length)} cells filled`);
}

function paste({ sheet, store, rows: shown }: EditingOptions, parts: Parts, text: string, cell: Cell | null): void {
  const texts = textFields(shown);
  const result = pasted(text, cell?.column ?? "input", newId, texts);
  if (result.kind === "rows") {
    const ids = new Set(parts.byId.keys());
    let taken = 0;
    const rows = result.rows.map((row) => {
      const isTaken = ids.has(row.id);
      if (isTaken) taken += 1;
      ids.add(row.id);
      return isTaken ? { ...row, id: newId() } : row;
    });
    store.dispatch({ kind: "add", rows });
    toast(pastedWords(rows, texts));
    if (taken > 0) toast(`${exactCount(taken)} of the pasted rows got new ids, because theirs are taken.`);
    return;
  }
  const field = cell === null ? null : fieldOf(cell.column);
  const row = cell === null ? undefined : parts.byId.get(cell.row);
  if (cell === null || field === null || row === undefined) {
    return toast("Select a cell of input, expected, metadata or tags first, then paste.", true);
  }
  const value = pastedValue(field, result.text, texts);
  const fault = faultOf(field, value);
  if (fault !== null) return toast(fault, true);
  parts.set([{ id: cell.row, base: parts.baseOf(row), field, value }]);
  sheet.actions.focus(cell);
}

function copiedText(parts: Parts, cell: Cell): string | null {
  const textIn = (row: DatasetRow, column: Column): string => {
    const field = fieldOf(column);
    if (field === null) return column === "id" ? row.id : column === "created" ? (row.created ?? "") : "";
    const value = valueOf(row, parts.editOf(row.id), field);
    if (field === "tags") return tagsOf(value).join(", ");
    return value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
  };
  const selected = parts.selected();
  const row = parts.byId.get(cell.row);
  const copied = selected.length > 0 ? selected : row === undefined ? [] : [row];
  if (copied.some((one) => hasCut(one))) {
    toast("Copied, with long values cut. Open a cell to copy all of it.");
  }
  if (selected.length === 0) return row === undefined ? null : copiedCell(textIn(row, cell.column));
  const columns = COLUMNS.filter((column) => column !== "origin" && column !== "created");
  return copiedRows([columns, ...selected.map((one) => columns.map((column) => textIn(one, column)))]);
}

export function useEditing(options: EditingOptions) {
  const parts = useParts(options);
  const { sheet, store, isEditable } = options;
  const addRow = useLatest(() => {
    if (!isEditable) return;
    const id = newId();
    store.dispatch({ kind: "add", rows: [{ id, values: {} }] });
    window.setTimeout(() => sheet.actions.focus({ row: id, column: "input" }), 0);
  });
  const fill = useLatest(() => {
    if (isEditable) void fillDown(options, parts).catch((error: unknown) => failed("Filling down failed.", error));
  });
  const empty = useLatest((cell: Cell) => {
    const field = fieldOf(cell.column);
    const row = parts.byId.get(cell.row);
    if (isEditable && field !== null && row !== undefined) {
      parts.set([{ id: cell.row, base: parts.baseOf(row), field, value: null }]);
    }
  });
  const take = useLatest((row: DatasetRow, field: Field, text: string, kind: CellKind, before: unknown) => {
    const read = readCell(field, text, kind, before);
    if ("value" in read) parts.set([{ id: row.id, base: parts.baseOf(row) === null ? null : row, field, value: read.value }]);
  });
  const onPaste = useLatest((text: string, cell: Cell | null) => paste(options, parts, text, cell));
  const onCopy = (cell: Cell): string | null => copiedText(parts, cell);
  return { addRow, fill, empty, take, onPaste, onCopy, byId: parts.byId, editOf: parts.editOf };
}

/** The cell to go to after an edit. */
export function nextCell(ids: readonly string[], cell: Cell, move: "stay" | "down" | "right" | "left"): Cell | null {
  if (move === "stay") return cell;
  return movedCell(ids, cell, move === "down" ? 1 : 0, move === "right" ? 1 : move === "left" ? -1 : 0);
}

/** How a cell is called for a screen reader. */
export const cellLabel = (column: Column, row: DatasetRow): string => `${column} of ${lineOf(row.id)}`;

export { textOf };
