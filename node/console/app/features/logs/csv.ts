// Writes CSV as RFC 4180 has it, such that no spreadsheet takes a cell for a formula.

/** What spreadsheets take for the start of a formula. */
const FORMULA = /^[\t\r ]*[=+\-@]/;

const isNumber = (text: string): boolean => /^[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text);

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** A cell. An apostrophe stands before what would be a formula; numbers stay numbers. */
export function csvCell(value: unknown): string {
  const text = textOf(value);
  const safe = FORMULA.test(text) && !isNumber(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const csvOf = (columns: readonly string[], rows: readonly (readonly unknown[])[]): string =>
  [columns, ...rows].map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
