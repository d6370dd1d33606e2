// Undo and redo of what narrows the list.

/** What is taken back together. */
export interface Narrowing {
  readonly filter: string;
  readonly range: string;
  readonly shape: string;
  readonly group: string;
}

export interface Undo<State> {
  readonly past: readonly State[];
  readonly present: State;
  readonly future: readonly State[];
}

const MOST = 100;

export const undoFrom = <State>(present: State): Undo<State> => ({ past: [], present, future: [] });

const same = (a: Narrowing, b: Narrowing): boolean =>
  a.filter === b.filter && a.range === b.range && a.shape === b.shape && a.group === b.group;

/** Takes a new state in, which ends what could be done again. A state that is already there changes nothing. */
export function noted<State extends Narrowing>(undo: Undo<State>, present: State): Undo<State> {
  if (same(undo.present, present)) return undo;
  return { past: [...undo.past, undo.present].slice(-MOST), present, future: [] };
}

export function undone<State>(undo: Undo<State>): Undo<State> {
  const before = undo.past.at(-1);
  if (before === undefined) return undo;
  return { past: undo.past.slice(0, -1), present: before, future: [undo.present, ...undo.future] };
}

export function redone<State>(undo: Undo<State>): Undo<State> {
  const [next, ...rest] = undo.future;
  if (next === undefined) return undo;
  return { past: [...undo.past, undo.present], present: next, future: rest };
}
