// The address that a copied link has where the page's own would show something else later.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "react";

type Write = () => string;

const current = signal<Write | null>(null);

/** The address of the page with everything fixed that moves with time; null if nothing does. */
export const frozenAddress = (): string | null => current.peek()?.() ?? null;

/** Says how the address is fixed, while a screen is shown. */
export function useFrozenAddress(write: Write): void {
  const latest = useRef(write);
  latest.current = write;
  useEffect(() => {
    const own: Write = () => latest.current();
    current.value = own;
    return () => {
      if (current.peek() === own) current.value = null;
    };
  }, []);
}
