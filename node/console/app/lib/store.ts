// State that changes often and redraws little: the cursor of a list, and what the page says aloud.
import { computed, signal, type ReadonlySignal } from "@preact/signals";

/** The row of a list that keys act on. */
export interface Cursor {
  readonly at: ReadonlySignal<string | null>;
  /** Whether a row is the current one; a signal of its own, so that a move redraws two rows. */
  is(id: string): ReadonlySignal<boolean>;
  set(id: string | null): void;
}

export function createCursor(start: string | null): Cursor {
  const at = signal(start);
  return {
    at,
    is: (id) => computed(() => at.value === id),
    set: (id) => {
      at.value = id;
    },
  };
}

/** The row that is `by` rows away, staying within the list. Without a current row it is the first or the last. */
export function moved(ids: readonly string[], from: string | null, by: number): string | null {
  if (ids.length === 0) return null;
  const index = from === null ? -1 : ids.indexOf(from);
  if (index < 0) return ids[by > 0 ? 0 : ids.length - 1] ?? null;
  return ids[Math.min(Math.max(index + by, 0), ids.length - 1)] ?? null;
}

/** What a screen reader is told. A space is added in turn, so that the same words are read again. */
export const spoken = signal("");

export function announce(text: string): void {
  spoken.value = spoken.peek() === text ? `${text} ` : text;
}
