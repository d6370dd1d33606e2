// Undo and redo of what narrows the rows.
import type { CompareState } from "./url";

export type Narrowing = Pick<CompareState, "filter" | "group" | "only" | "score" | "sort">;

export interface Undo {
  readonly past: readonly Narrowing[];
  readonly present: Narrowing;
  readonly future: readonly Narrowing[];
}

const MOST = 100;

export const narrowingOf = ({ filter, group, only, score, sort }: Narrowing): Narrowing => ({ filter, group, only, score, sort });

export const undoFrom = (present: Narrowing): Undo => ({ past: [], present, future: [] });

const same = (a: Narrowing, b: Narrowing): boolean =>
  a.filter === b.filter && a.group === b.group && a.only === b.only && a.score === b.score && a.sort === b.sort;

/** Takes a new state in, which ends what could be done again. A state that is already there changes nothing. */
export function noted(undo: Undo, present: Narrowing): Undo {
  if (same(undo.present, present)) return undo;
  return { past: [...undo.past, undo.present].slice(-MOST), present, future: [] };
}

export function undone(undo: Undo): Undo {
  const before = undo.past.at(-1);
  if (before === undefined) return undo;
  return { past: undo.past.slice(0, -1), present: before, future: [undo.present, ...undo.future] };
}

export function redone(undo: Undo): Undo {
  const [next, ...rest] = undo.future;
  if (next === undefined) return undo;
  return { past: [...undo.past, undo.present], present: next, future: rest };
}
