// Asks before a page with unsaved edits is left: by the browser when its tab closes, by a dialog inside the console.
import { useEffect, useState } from "react";
import { guardLeaving } from "../../lib/router";
import type { EditStore } from "./store";

const pathOf = (href: string): string => href.split("?", 1)[0] ?? "";

/** Returns where the page wants to go while that is asked, and the answers. */
export function useLeaving(store: EditStore) {
  const [asked, setAsked] = useState<(() => void) | null>(null);
  const hasEdits = store.history.value.present.rows.size > 0;
  useEffect(() => {
    if (!hasEdits) return undefined;
    const here = window.location.pathname;
    const stop = guardLeaving((href, go) => {
      if (pathOf(href) === here) return true;
      setAsked(() => go);
      return false;
    });
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => {
      stop();
      window.removeEventListener("beforeunload", warn);
    };
  }, [hasEdits]);
  return { asked, stay: () => setAsked(null) };
}
