// What the console needs of @preact/signals, for components of React.
import { computed, type ReadonlySignal } from "@preact/signals-core";
import { useMemo, useRef } from "react";

export * from "@preact/signals-core";

/** A computed signal that lives as long as its component, and computes with what the last drawing gave it. */
export function useComputed<T>(compute: () => T): ReadonlySignal<T> {
  const last = useRef(compute);
  last.current = compute;
  return useMemo(() => computed(() => last.current()), []);
}
