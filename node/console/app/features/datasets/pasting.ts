// What pasted text becomes: the value of a cell, or new rows.
import { fieldValue, FIELDS, isField, type Field } from "./cells";
import type { NewRow, Values } from "./edits";
import type { Column } from "./sheet";
import { createTable } from "./table";

export type Pasted =
  | { readonly kind: "cell"; readonly text: string }
  | { readonly kind: "rows"; readonly rows: readonly NewRow[] };

const MOST_ROWS = 5000;

/** The fields that a first line names; null if it is not a line of names. */
function headOf(cells: readonly string[]): readonly (Field | "id" | null)[] | null {
  const names = cells.map((cell) => cell.trim().toLowerCase());
  const known = names.map((name) => (isField(name) || name === "id" ? name : null));
  return known.filter((name) => name !== null).length > 0 && known.includes("input") ? known : null;
}

/** The fields from a column on: what is pasted fills them from left to right. */
function fieldsFrom(column: Column): readonly Field[] {
  const start = isField(column) ? FIELDS.indexOf(column) : 0;
  return FIELDS.slice(start);
}

function valuesOf(cells: readonly string[], fields: readonly (Field | "id" | null)[]): Values {
  return Object.fromEntries(
    cells.flatMap((cell, index) => {
      const field = fields[index];
      return field === undefined || field === null || field === "id" ? [] : [[field, fieldValue(field, cell)]];
    }),
  );
}

/** Reads pasted text. A text without tabs and line ends is the value of a cell. */
export function pasted(text: string, column: Column, newId: () => string): Pasted {
  const trimmed = text.replace(/(?:\r\n|\r|\n)$/, "");
  if (!/[\t\r\n]/.test(trimmed)) return { kind: "cell", text: trimmed };
  const table = createTable("\t");
  const lines = [...table.push(trimmed), ...table.end()].slice(0, MOST_ROWS);
  const head = headOf(lines[0]?.cells ?? []);
  const fields = head ?? fieldsFrom(column);
  const rows = lines.slice(head === null ? 0 : 1).map((line) => {
    const named = head === null ? -1 : head.indexOf("id");
    const id = named < 0 ? "" : (line.cells[named] ?? "").trim();
    return { id: id === "" ? newId() : id, values: valuesOf(line.cells, fields) };
  });
  return { kind: "rows", rows };
}

/** A cell as copied text: quoted where it has tabs, quotes or line ends, as spreadsheets do. */
export const copiedCell = (text: string): string => (/["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export const copiedRows = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => row.map(copiedCell).join("\t")).join("\n");
