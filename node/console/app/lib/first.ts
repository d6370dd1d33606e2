// What can wait on the first load of a page, so that its first rows come before everything else.
import { signal } from "@preact/signals";

/** How long anything is held back at most, whatever happens to the rows. */
const MOST_MS = 15_000;

/** Used where the browser does not tell when it is idle. */
const IDLE_MS = 200;

/** Whether what can wait has to wait. */
export const isHeldBack = signal(false);

/** Called when a page starts whose rows come first. */
export function holdBack(): void {
  isHeldBack.value = true;
  window.setTimeout(letGo, MOST_MS);
}

/** Called when the rows are there, or will not come. */
export function letGo(): void {
  isHeldBack.value = false;
}

/** Runs something once nothing is held back and the browser has nothing better to do. Returns what calls it off. */
export function whenIdle(run: () => void): () => void {
  let isOff = false;
  const once = (): void => {
    if (!isOff) run();
  };
  const stop = isHeldBack.subscribe((isHeld) => {
    if (isHeld || isOff) return;
    if ("requestIdleCallback" in window) window.requestIdleCallback(once);
    else setTimeout(once, IDLE_MS);
  });
  return () => {
    isOff = true;
    stop();
  };
}
