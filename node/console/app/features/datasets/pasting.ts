// What pasted text becomes: the value of a cell, or new rows.
import { fieldValue, FIELDS, isCut, isField, type Field } from "./cells";
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

/** The fields whose columns hold texts, so that a pasted number stays a text there. */
export const textFields = (rows: readonly Partial<Readonly<Record<Field, unknown>>>[]): ReadonlySet<Field> =>
  new Set(FIELDS.filter((field) => rows.some((row) => typeof row[field] === "string" && !isCut(row[field]))));

/** The value of a pasted cell. Text in quotation marks stays as it is. */
export const pastedValue = (field: Field, cell: string, texts: ReadonlySet<Field>): unknown =>
  fieldValue(field, cell, !texts.has(field) && !/^\s*"/.test(cell));

function valuesOf(cells: readonly string[], fields: readonly (Field | "id" | null)[], texts: ReadonlySet<Field>): Values {
  return Object.fromEntries(
    cells.flatMap((cell, index) => {
      const field = fields[index];
      return field === undefined || field === null || field === "id" ? [] : [[field, pastedValue(field, cell, texts)]];
    }),
  );
}

/** What is said of pasted rows: which of them became values, and which stayed texts. */
export function pastedWords(rows: readonly NewRow[], texts: ReadonlySet<Field>): string {
  const count = rows.length === 1 ? "1 row pasted." : `${rows.length.toLocaleString("en-US")} rows pasted.`;
  const filled = FIELDS.filter((field) => rows.some(({ values }) => field in values));
  const isScalar = (value: unknown): boolean => typeof value === "number" || typeof value === "boolean";
  const read = filled.filter((field) => rows.some(({ values }) => isScalar(values[field])));
  const kept = filled.filter((field) => texts.has(field));
  const ofRead = read.length === 0 ? "" : ` Numbers, true and false were read as such in ${read.join(" and ")}.`;
  return `${count}${ofRead}${kept.length === 0 ? "" : ` Numbers stay texts in ${kept.join(" and ")}, because the column holds texts.`}`;
}

/** Reads pasted text. A text without tabs and line ends is the value of a cell. */
export function pasted(text: string, column: Column, newId: () => string, texts: ReadonlySet<Field>): Pasted {
  const trimmed = text.replace(/(?:\r\n|\r|\n)$/, "");
  if (!/[\t\r\n]/.test(trimmed)) return { kind: "cell", text: trimmed };
  const table = createTable("\t");
  const lines = [...table.push(trimmed), ...table.end()].slice(0, MOST_ROWS);
  const head = headOf(lines[0]?.cells ?? []);
  const fields = head ?? fieldsFrom(column);
  const rows = lines.slice(head === null ? 0 : 1).map((line) => {
    const named = head === null ? -1 : head.indexOf("id");
    const id = named < 0 ? "" : (line.cells[named] ?? "").trim();
    return { id: id === "" ? newId() : id, values: valuesOf(line.cells, fields, texts) };
  });
  return { kind: "rows", rows };
}

/** A cell as copied text: quoted where it has tabs, quotes or line ends, as spreadsheets do. */
export const copiedCell = (text: string): string => (/["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export const copiedRows = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => row.map(copiedCell).join("\t")).join("\n");
