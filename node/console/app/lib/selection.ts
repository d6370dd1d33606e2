// The selected rows of a list, as a signal, so that a change redraws the rows that it concerns.
import { computed, signal, type ReadonlySignal } from "@preact/signals";

export interface Selection {
  readonly ids: ReadonlySignal<ReadonlySet<string>>;
  /** Whether a row is selected; a signal of its own. */
  has(id: string): ReadonlySignal<boolean>;
  toggle(id: string): void;
  set(ids: Iterable<string>): void;
  add(ids: Iterable<string>): void;
  clear(): void;
}

export function createSelection(): Selection {
  const ids = signal<ReadonlySet<string>>(new Set());
  const set = (next: Iterable<string>): void => {
    ids.value = new Set(next);
  };
  return {
    ids,
    has: (id) => computed(() => ids.value.has(id)),
    toggle: (id) => {
      const next = new Set(ids.peek());
      if (!next.delete(id)) next.add(id);
      ids.value = next;
    },
    set,
    add: (more) => set([...ids.peek(), ...more]),
    clear: () => {
      if (ids.peek().size > 0) set([]);
    },
  };
}
