// Keeps what the rows were narrowed by, so that it can be taken back.
import { useEffect, useRef, useState } from "react";
import { useLatest } from "../../lib/commands";
import type { CompareState } from "./url";
import { narrowingOf, noted, redone, undoFrom, undone, type Undo } from "./undo";

export function useUndo(state: CompareState, change: (part: Partial<CompareState>) => void) {
  const [undo, setUndo] = useState<Undo>(() => undoFrom(narrowingOf(state)));
  const latest = useRef(undo);
  latest.current = undo;
  const { filter, group, only, score, sort } = state;
  useEffect(() => setUndo((before) => noted(before, { filter, group, only, score, sort })), [filter, group, only, score, sort]);
  const go = useLatest((next: Undo) => {
    setUndo(next);
    change(next.present);
  });
  return {
    undo: () => go(undone(latest.current)),
    redo: () => go(redone(latest.current)),
    canUndo: (): boolean => latest.current.past.length > 0,
    canRedo: (): boolean => latest.current.future.length > 0,
  };
}
