// Asks before a page with unsaved edits is left: by the browser when its tab closes, by a dialog inside the console.
import { useEffect, useState } from "react";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { guardLeaving } from "../../../lib/router";
import type { Desk } from "../useDesk";

const pathOf = (href: string): string => href.split("?", 1)[0] ?? "";

export function Leaving({ desk }: { readonly desk: Desk }) {
  const [asked, setAsked] = useState<(() => void) | null>(null);
  const hasEdits = desk.edits !== null;
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
  if (asked === null) return null;
  const stay = (): void => setAsked(null);
  return (
    <Dialog title="Leave with unsaved edits?" onClose={stay}>
      <p>The edits of {desk.newest.name} are not saved. They are lost when you leave.</p>
      <DialogActions>
        <Button onClick={asked}>Discard and leave</Button>
        <Button look="primary" onClick={stay}>
          Stay
        </Button>
      </DialogActions>
    </Dialog>
  );
}
