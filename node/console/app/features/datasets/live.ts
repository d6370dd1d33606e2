// What other people do to a dataset while it is shown: rows that changed, rows that came, rows that are gone.
import type { DatasetRow } from "../../api/datasets";

export interface Live {
  /** The newest transaction that was seen. */
  readonly last: string;
  /** Newer states of rows, by their ids. */
  readonly changed: ReadonlyMap<string, DatasetRow>;
  /** Rows that came after the list was read, the newest first. */
  readonly fresh: readonly DatasetRow[];
  readonly gone: ReadonlySet<string>;
}

export const liveFrom = (last: string): Live => ({ last, changed: new Map(), fresh: [], gone: new Set() });

/** The later of two transactions, whose ids are numbers without leading zeros. */
export function later(a: string, b: string): string {
  if (a.length !== b.length) return a.length > b.length ? a : b;
  return a > b ? a : b;
}

/**
 * Takes in rows that were written after `last`. A row that the list has is replaced; a row above the list is put there
 * if it fulfils the filter; others stand in pages that are not read yet.
 */
export function arrived(live: Live, rows: readonly DatasetRow[], transaction: string, read: readonly DatasetRow[]): Live {
  const last = later(live.last, transaction);
  if (rows.length === 0) return last === live.last ? live : { ...live, last };
  const known = new Set(read.map((row) => row.id));
  const top = read.reduce((most, row) => (row.place > most ? row.place : most), "");
  const changed = new Map(live.changed);
  const fresh = new Map(live.fresh.map((row) => [row.id, row]));
  const gone = new Set(live.gone);
  for (const row of rows) {
    gone.delete(row.id);
    if (known.has(row.id)) changed.set(row.id, row);
    else if (fresh.has(row.id) || (row.place > top && row.isMatch)) fresh.set(row.id, row);
  }
  const sorted = [...fresh.values()].sort((a, b) => (a.place > b.place ? -1 : 1));
  return { last, changed, fresh: sorted, gone };
}

/** Takes out rows that exist no more. */
export function vanished(live: Live, ids: readonly string[]): Live {
  if (ids.length === 0) return live;
  return { ...live, gone: new Set([...live.gone, ...ids]) };
}

/** Whether a transaction left no row behind, so that something must have been deleted. */
export const isDeletion = (before: Live, rows: readonly DatasetRow[], transaction: string): boolean => {
  const newest = rows.reduce((most, row) => later(most, row.transaction), before.last);
  return later(newest, transaction) !== newest;
};

/** The rows as they are now. */
export function merged(read: readonly DatasetRow[], live: Live): readonly DatasetRow[] {
  if (live.changed.size === 0 && live.fresh.length === 0 && live.gone.size === 0) return read;
  const old = read.map((row) => live.changed.get(row.id) ?? row);
  const ids = new Set(read.map((row) => row.id));
  return [...live.fresh.filter((row) => !ids.has(row.id)), ...old].filter((row) => !live.gone.has(row.id));
}
