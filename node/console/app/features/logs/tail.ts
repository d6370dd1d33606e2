// What came since the list was read: new rows wait until somebody wants them, changed rows are put in their places.
import type { LogRow } from "../../api/rows";
import type { LogShape } from "./url";

export interface Tail {
  /** The newest transaction that was seen. */
  readonly last: string;
  /** New rows that are in the list, the newest first. */
  readonly shown: readonly LogRow[];
  /** New rows that wait. */
  readonly waiting: readonly LogRow[];
  /** Newer versions of rows, by their keys. */
  readonly changed: ReadonlyMap<string, LogRow>;
}

export const tailFrom = (last: string): Tail => ({ last, shown: [], waiting: [], changed: new Map() });

/** What a row of the list is: a trace, or a span. */
export const keyOf = (row: LogRow, shape: LogShape): string => (shape === "traces" ? row.rootSpanId : row.id);

/** Transaction ids are numbers of any length, as texts. */
export const isLater = (a: string, b: string): boolean => (a.length === b.length ? a > b : a.length > b.length);

/** Takes rows in that came after the last transaction. At the top of the list they are shown at once. */
export function arrived(
  tail: Tail,
  rows: readonly LogRow[],
  transaction: string,
  known: ReadonlySet<string>,
  shape: LogShape,
  isAtTop: boolean,
): Tail {
  const last = isLater(transaction, tail.last) ? transaction : tail.last;
  if (rows.length === 0) return last === tail.last ? tail : { ...tail, last };
  const key = (row: LogRow): string => keyOf(row, shape);
  const there = new Set([...known, ...tail.shown.map(key)]);
  const fresh = rows.filter((row) => !there.has(key(row)));
  const freshKeys = new Set(fresh.map(key));
  const changed = new Map(tail.changed);
  for (const row of rows) if (there.has(key(row))) changed.set(key(row), row);
  const waiting = [...fresh, ...tail.waiting.filter((row) => !freshKeys.has(key(row)))];
  const next = { ...tail, last, waiting, changed };
  return isAtTop ? released(next) : next;
}

/** Puts the rows that wait into the list. */
export const released = (tail: Tail): Tail =>
  tail.waiting.length === 0 ? tail : { ...tail, waiting: [], shown: [...tail.waiting, ...tail.shown] };

/** The rows of the list: those that came since, those that were read, each in its newest version and once. */
export function merged(read: readonly LogRow[], tail: Tail, shape: LogShape): readonly LogRow[] {
  if (tail.shown.length === 0 && tail.changed.size === 0) return read;
  const seen = new Set<string>();
  return [...tail.shown, ...read].flatMap((row) => {
    const key = keyOf(row, shape);
    if (seen.has(key)) return [];
    seen.add(key);
    return [tail.changed.get(key) ?? row];
  });
}
