// How a grid scrolls: which rows are in view, how the focus follows, and what stays in place when rows come before.
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type RefObject } from "react";
import { preferences, type Density } from "../lib/preferences";
import { scrollFor, shiftOf, windowOf, type Window } from "./GridLogic";
import type { GridState } from "./GridTypes";

const HEAD = 28;
const SIDEWAYS = 80;
const REM: Readonly<Record<Density, number>> = { compact: 1.5, regular: 1.75, roomy: 2.25 };

/** The height of a row in pixels. */
export function useRowHeight(): number {
  const density = preferences.value.density;
  return useMemo(() => {
    const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
    return REM[density] * rem;
  }, [density]);
}

export interface Scroll {
  readonly element: RefObject<HTMLDivElement | null>;
  /** The row that takes the focus as soon as it is drawn. */
  readonly wanted: RefObject<string | null>;
  readonly window: Window;
  readonly onScroll: () => void;
  /** Makes a row the current one, brings it into view and focuses it. */
  focus(id: string | null): void;
  /** How many rows are in view. */
  page(): number;
  sideways(by: number): void;
  setTracks(tracks: string): void;
}

const same = (a: Window, b: Window): boolean => a.first === b.first && a.end === b.end;

/** Keeps the rows in view where they are when others come before them, unless the list is at its top. */
function useStablePlace(element: RefObject<HTMLDivElement | null>, ids: readonly string[], rowHeight: number): void {
  const before = useRef(ids);
  useLayoutEffect(() => {
    const grid = element.current;
    const old = before.current;
    before.current = ids;
    if (grid === null || old === ids || grid.scrollTop < 1) return;
    const index = Math.floor(grid.scrollTop / rowHeight);
    grid.scrollTop += shiftOf(ids, old[index], index) * rowHeight;
  }, [element, ids, rowHeight]);
}

interface Places {
  readonly ids: readonly string[];
  readonly rowHeight: number;
}

interface Parts {
  readonly element: RefObject<HTMLDivElement | null>;
  readonly wanted: RefObject<string | null>;
  readonly places: RefObject<Places>;
  readonly setShown: (next: (before: Window) => Window) => void;
}

/** What scrolls, measures and focuses. It never changes, and reads where things are when it is called. */
function actionsOf(state: GridState, { element, wanted, places, setShown }: Parts) {
  const height = (): number => Math.max(0, (element.current?.clientHeight ?? 0) - HEAD);
  const measure = (): void => {
    const grid = element.current;
    if (grid === null) return;
    const { ids, rowHeight } = places.current;
    const next = windowOf(grid.scrollTop, height(), rowHeight, ids.length);
    setShown((before) => (same(before, next) ? before : next));
    state.inner.isAtTop.value = grid.scrollTop < rowHeight / 2;
  };
  const reveal = (id: string): void => {
    const { ids, rowHeight } = places.current;
    const index = ids.indexOf(id);
    const grid = element.current;
    if (index < 0 || grid === null) return;
    const to = scrollFor(index, grid.scrollTop, height(), rowHeight);
    if (to !== null) grid.scrollTop = to;
    measure();
  };
  const rowOf = (id: string): HTMLElement | undefined =>
    [...(element.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])].find((one) => one.dataset["row"] === id);
  const focus = (id: string | null): void => {
    if (id === null) return;
    reveal(id);
    wanted.current = id;
    state.cursor.set(id);
    const row = rowOf(id);
    if (row === undefined) return;
    wanted.current = null;
    row.focus({ preventScroll: true });
  };
  return {
    measure,
    reveal,
    focus,
    page: (): number => Math.floor(height() / places.current.rowHeight),
    sideways: (by: number): void => element.current?.scrollBy({ left: by * SIDEWAYS }),
    setTracks: (tracks: string): void => element.current?.style.setProperty("--tracks", tracks),
  };
}

export function useScroll(state: GridState, ids: readonly string[], rowHeight: number): Scroll {
  const element = useRef<HTMLDivElement>(null);
  const wanted = useRef<string | null>(null);
  const places = useRef<Places>({ ids, rowHeight });
  places.current = { ids, rowHeight };
  const [shown, setShown] = useState<Window>({ first: 0, end: Math.min(ids.length, 40) });
  useStablePlace(element, ids, rowHeight);
  const actions = useMemo(() => actionsOf(state, { element, wanted, places, setShown }), [state]);
  useLayoutEffect(() => actions.measure(), [actions, ids, rowHeight]);
  useEffect(() => {
    const grid = element.current;
    if (grid === null) return undefined;
    const observer = new ResizeObserver(() => actions.measure());
    observer.observe(grid);
    const stop = state.cursor.at.subscribe((id) => {
      if (id !== null) actions.reveal(id);
    });
    return () => {
      observer.disconnect();
      stop();
    };
  }, [actions, state]);
  return useMemo(
    () => ({ element, wanted, window: shown, onScroll: actions.measure, ...actions }),
    [actions, shown],
  );
}
