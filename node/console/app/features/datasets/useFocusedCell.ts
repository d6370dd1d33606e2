// The cell that is open in the editor.
import { useState } from "react";
import type { DatasetRow } from "../../api/datasets";
import { problemOf } from "../../lib/errors";
import type { CellEditorFault, CellEditorKind, CellEditorMove } from "../../design/CellEditor";
import { jsonFault } from "../../design/CellEditorJson";
import { toast } from "../../design/Toast";
import { useLatest } from "../../lib/commands";
import { isCut, kindsOf, readCell, textOf, type CellKind, type Field } from "./cells";
import { valueOf } from "./edits";
import type { DatasetPlace } from "./queries";
import { misfitOf, type Schemas } from "./schemas";
import { fieldOf, type Cell, type Sheet } from "./sheet";
import { nextCell, wholeRow, type useEditing } from "./useEditing";

export interface OpenCell {
  readonly cell: Cell;
  readonly field: Field;
  /** The row with whole values, without its edits. */
  readonly row: DatasetRow;
  readonly value: unknown;
  readonly at: DOMRect;
}

interface Options {
  readonly place: DatasetPlace;
  readonly sheet: Sheet;
  readonly rows: readonly DatasetRow[];
  readonly editing: ReturnType<typeof useEditing>;
  readonly isEditable: boolean;
  /** Opens a row to be read. */
  readonly onRow: (id: string) => void;
}

export function useFocusedCell({ place, sheet, rows, editing, isEditable, onRow }: Options) {
  const [open, setOpen] = useState<OpenCell | null>(null);
  const start = useLatest((cell: Cell, at: DOMRect) => {
    const field = fieldOf(cell.column);
    const row = editing.byId.get(cell.row);
    if (row === undefined) return;
    if (field === null || !isEditable) return onRow(row.id);
    const show = (whole: DatasetRow): void => {
      const value = valueOf(whole, editing.editOf(row.id), field);
      setOpen({ cell, field, row: whole, value, at });
    };
    if (!isCut(row[field])) return show(row);
    wholeRow(place, row).then(show, (error: unknown) => toast(`The cell was not opened. ${problemOf(error, 0).text}`, true));
  });
  const close = (to: Cell | null): void => {
    setOpen(null);
    window.setTimeout(() => sheet.actions.focus(to), 0);
  };
  const done = (text: string, kind: CellKind, move: CellEditorMove): void => {
    if (open === null) return;
    editing.take(open.row, open.field, text, kind, open.value);
    close(nextCell(rows.map((row) => row.id), open.cell, move));
  };
  return { open, start, done, cancel: () => close(open?.cell ?? null) };
}

/** What is wrong with a text in a cell, for the editor. */
export function checkCell({ field, value }: OpenCell, schemas: Schemas, text: string, kind: CellEditorKind): CellEditorFault | null {
  if (kind === "json" && text.trim() !== "") {
    const fault = jsonFault(text);
    if (fault !== null) return { message: fault.message, place: fault, isMild: false };
  }
  const read = readCell(field, text, kind, value);
  if ("fault" in read) return { message: read.fault, place: null, isMild: false };
  const misfit = read.value === null ? null : misfitOf(schemas[field], read.value);
  return misfit === null ? null : { message: `Does not fit the schema. ${misfit}`, place: null, isMild: true };
}

export { kindsOf, textOf };
