// The rows of a playground: those of a dataset, or one input that is typed.
import type { DatasetRow } from "../../api/datasets";
import { isRecord, type Fields } from "../../api/narrow";
import type { PlayRows } from "../../api/playground";
import { asText, parseJson } from "../../lib/json";

export interface PlayRow {
  readonly id: string;
  readonly input: unknown;
  readonly expected: unknown;
  readonly metadata: Fields | null;
  readonly tags: unknown;
  /** The row's place in its dataset; null for a typed one. */
  readonly origin: Fields | null;
  /** Changes when the row changes. */
  readonly version: string;
}

/** How many rows of a dataset are shown and run. */
export const ROWS_MAX = 500;

export const INPUT_ROW = "input";

/** Reads a typed value: JSON where it is JSON, else the text; nothing for no text. */
export function typed(text: string): unknown {
  if (text.trim() === "") return null;
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

/** A row with its content in order: what the rows of an input are. */
export const rowOfInput = ({ input, expected }: Extract<PlayRows, { kind: "input" }>): PlayRow => ({
  id: INPUT_ROW,
  input: typed(input),
  expected: typed(expected),
  metadata: null,
  tags: null,
  origin: null,
  version: `${input}\n${expected}`,
});

export const rowOfDataset = (dataset: string, row: DatasetRow): PlayRow => ({
  id: row.id,
  input: row.input,
  expected: row.expected,
  metadata: isRecord(row.metadata) ? row.metadata : null,
  tags: row.tags,
  origin: { object_type: "dataset", object_id: dataset, id: row.id, _xact_id: row.transaction, created: row.created },
  version: row.transaction,
});

/** A value as a few lines: the text, or indented JSON. */
export const linesOf = (value: unknown): string => (value === null ? "" : asText(value));
