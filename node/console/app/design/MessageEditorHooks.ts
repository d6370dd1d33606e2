// Which message is which while they are added, moved and removed: their keys, and where the focus goes.
import { useLayoutEffect, useRef } from "react";

/** Gives messages, which have no ids, keys that stay with them while they are moved here. */
export function useKeys(count: number) {
  const keys = useRef<readonly number[]>([]);
  const next = useRef(0);
  const fresh = (): number => (next.current += 1);
  if (keys.current.length !== count) {
    const kept = keys.current.slice(0, count);
    keys.current = [...kept, ...Array.from({ length: count - kept.length }, fresh)];
  }
  return {
    all: keys.current,
    change: (change: (all: readonly number[]) => readonly number[]): void => {
      keys.current = change(keys.current);
    },
    fresh,
  };
}

/** Focuses a message after the list has changed, once it is drawn. */
export function useFocusAfter() {
  const list = useRef<HTMLOListElement>(null);
  const wanted = useRef<(() => void) | null>(null);
  useLayoutEffect(() => {
    wanted.current?.();
    wanted.current = null;
  });
  const focusBlock = (index: number): void => {
    wanted.current = () => {
      const block = list.current?.children[index];
      const target =
        block?.querySelector<HTMLElement>("textarea") ??
        list.current?.parentElement?.querySelector<HTMLElement>(":scope > button");
      target?.focus();
    };
  };
  return { list, focusBlock, after: (run: () => void) => (wanted.current = run) };
}
