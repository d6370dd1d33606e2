// The rows of the comparison: which is the current one, which are unfolded, and which pair is open.
import { useEffect, useRef, useState } from "react";
import type { Pair } from "../../api/comparison";
import { createGridState, type GridState } from "../../design/GridTypes";
import { useLatest } from "../../lib/commands";
import { moved } from "../../lib/store";
import { hasError, pairIdOf, pairIdsOf, pairOfRow, tableRows, trialsOf, type TableRow } from "./rows";
import type { CompareState } from "./url";

interface RowsOptions {
  readonly state: CompareState;
  readonly pairs: readonly Pair[];
  readonly change: (part: Partial<CompareState>) => void;
}

/** How long the current row has to rest before the open pair follows it, so that a held key stays swift. */
const FOLLOW_MS = 80;

/** The pair after one, in the direction `by`, that has an error; null if there is none. */
function errorFrom(pairs: readonly Pair[], from: string | null): Pair | null {
  const start = pairs.findIndex((pair) => pairIdOf(pair) === from);
  const after = [...pairs.slice(start + 1), ...pairs.slice(0, Math.max(0, start))];
  return after.find(hasError) ?? null;
}

const currentPair = (grid: GridState): string | null => {
  const at = grid.cursor.at.peek();
  return at === null ? null : pairOfRow(at);
};

/** Which pairs show their trials, and how that changes for the current one. */
function useUnfolded(pairs: readonly Pair[], grid: GridState) {
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const unfold = useLatest((isOpen: boolean) => {
    const id = currentPair(grid);
    const pair = pairs.find((one) => pairIdOf(one) === id);
    if (id === null || pair === undefined || trialsOf(pair) < 2 || unfolded.has(id) === isOpen) return;
    const next = new Set(unfolded);
    if (isOpen) next.add(id);
    else next.delete(id);
    setUnfolded(next);
    if (!isOpen) grid.actions.focus(id);
  });
  return { unfolded, unfold };
}

/** Calls a function with the current row a moment after it came to rest. */
function useRest(grid: GridState, follow: (id: string | null) => void): void {
  const timer = useRef(0);
  useEffect(() => {
    const stop = grid.cursor.at.subscribe((id) => {
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => follow(id), FOLLOW_MS);
    });
    return () => {
      stop();
      window.clearTimeout(timer.current);
    };
  }, [grid, follow]);
}

export function useRows({ state, pairs, change }: RowsOptions) {
  const [grid] = useState(() => createGridState());
  const { unfolded, unfold } = useUnfolded(pairs, grid);
  const known = state.row === "" ? null : (pairs.find((pair) => pairIdsOf(pair).includes(state.row)) ?? null);
  const knownId = known === null ? null : pairIdOf(known);
  const openPair = useLatest((pair: Pair) => change({ row: pairIdOf(pair), span: "" }));
  const openRow = useLatest((row: TableRow) => {
    const one = row.trial === null ? undefined : row.pair.cells[0]?.trials[row.trial];
    change({ row: one?.id ?? pairIdOf(row.pair), span: "" });
  });
  const follow = useLatest((id: string | null) => {
    if (id === null || state.row === "") return;
    const row = tableRows(pairs, unfolded).find((one) => one.id === id);
    if (row !== undefined && pairOfRow(id) !== knownId) openRow(row);
  });
  useRest(grid, follow);
  useEffect(() => {
    if (knownId !== null && currentPair(grid) !== knownId) grid.cursor.set(knownId);
  }, [grid, knownId]);
  const step = useLatest((by: 1 | -1) => {
    const id = moved(pairs.map(pairIdOf), knownId ?? currentPair(grid), by);
    if (id === null) return;
    grid.cursor.set(id);
    change({ row: id, span: "" });
  });
  const close = useLatest(() => {
    change({ row: "", span: "", tab: "outputs" });
    grid.actions.focus(currentPair(grid));
  });
  const nextError = useLatest(() => {
    const found = errorFrom(pairs, currentPair(grid));
    if (found !== null) grid.actions.focus(pairIdOf(found));
  });
  const actions = { move: grid.actions.move, open: grid.actions.open, unfold, step, close, nextError };
  return { grid, unfolded, known, openPair, openRow, actions };
}
