// Loads the code of a screen when it is first shown.
import { useEffect, useState, type ComponentType, type ReactNode } from "react";
import { Button } from "../design/Button";
import { Empty } from "../design/Empty";
import { focusScreen } from "./focus";

const RELOADED = "assay-reloaded";

/**
 * Loads the page again, once, because a file of it is gone: the server has been upgraded since the page was loaded, or
 * serves another version than the node before. The mark stands in the history's entry, which outlives the loading.
 */
function reloadOnce(): boolean {
  const state: unknown = window.history.state;
  if (state === RELOADED) return false;
  window.history.replaceState(RELOADED, "");
  window.location.reload();
  return true;
}

/** What stands in the place of a screen whose files could not be loaded. */
export const failed: ReactNode = (
  <Empty action={<Button onClick={() => window.location.reload()}>Load again</Button>}>
    The files of this page could not be loaded.
  </Empty>
);

type Loaded<Props> = ComponentType<Props> | "failed" | null;

/** Returns a component that shows nothing until its code is there. */
export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  whenFailed: ReactNode,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return function Later(props: Props) {
    const [Shown, setShown] = useState<Loaded<Props>>(() => loaded);
    useEffect(() => {
      if (loaded !== null) return;
      load().then(
        (component) => {
          loaded = component;
          setShown(() => component);
        },
        () => {
          if (!reloadOnce()) setShown("failed");
        },
      );
    }, []);
    useEffect(() => {
      if (Shown !== null) focusScreen();
    }, [Shown]);
    if (Shown === "failed") return whenFailed;
    return Shown === null ? null : <Shown {...props} />;
  };
}
