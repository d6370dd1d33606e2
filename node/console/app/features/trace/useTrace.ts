// The state of an open trace: its spans, what is folded, what is selected, and what was found.
import { useQuery, useQueryClient, type UseQueryResult } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { SpanHead, SpanPlace } from "../../api/spans";
import { announce } from "../../lib/store";
import type { TracePanelProps, TraceView } from "../../lib/trace";
import { readVersion, sentVersion } from "../../lib/version";
import { contentsQuery, joined, newestOf, readLater, spanQuery, spansQuery } from "./queries";
import { wholeOf, type Window } from "./tree/bars";
import { foldedBelow, linesOf, nextOf, NOTHING_FOLDED, unfoldedTo, type Folding, type Line } from "./tree/lines";
import { NONE, treeOf, type TraceTree } from "./tree/model";

const ASK_EVERY_MS = 2000;
const REST_MS = 250;
/** How long a selection rests before its neighbours are read. */
const NEIGHBOURS_MS = 400;

/** A value as it was when it last rested. */
function useRested(value: string): string {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setRested(value), REST_MS);
    return () => window.clearTimeout(timer);
  }, [value]);
  return rested;
}

/** Asks for new spans while the trace runs and the page is in view. */
function useGrowth(place: SpanPlace, tree: TraceTree | null): void {
  const client = useQueryClient();
  const isRunning = place.version === "" && tree !== null && tree.root !== NONE && tree.isOpen[tree.root] === 1;
  useEffect(() => {
    if (!isRunning) return undefined;
    const key = spansQuery(place).queryKey;
    const abort = new AbortController();
    const ask = async (): Promise<void> => {
      if (document.hidden) return;
      const known = client.getQueryData(key) ?? [];
      const later = await readLater(place, newestOf(known), { signal: abort.signal });
      if (later.length > 0 && !abort.signal.aborted) client.setQueryData(key, joined(known, later));
    };
    const timer = window.setInterval(() => void ask().catch(() => undefined), ASK_EVERY_MS);
    return () => {
      window.clearInterval(timer);
      abort.abort();
    };
  }, [isRunning, place, client]);
}

/** The spans that have some words in their name, their model, or their contents. */
function useFound(place: SpanPlace, tree: TraceTree | null, words: string) {
  const rested = useRested(words.trim());
  const contents = useQuery(contentsQuery(place, rested));
  const found = useMemo((): readonly number[] | null => {
    if (tree === null || words.trim() === "") return null;
    const sought = words.trim().toLowerCase();
    const inContents = rested === words.trim() ? contents.data : undefined;
    const found: number[] = [];
    tree.order.forEach((index) => {
      const span = tree.spans[index];
      if (span === undefined) return;
      const isNamed = `${span.name} ${span.model} ${span.type}`.toLowerCase().includes(sought);
      if (isNamed || inContents?.has(span.id) === true) found.push(index);
    });
    return found;
  }, [tree, words, rested, contents.data]);
  const isFinding = words.trim() !== "" && (rested !== words.trim() || contents.isFetching);
  return { found, isFinding, hasFailed: contents.isError && !contents.isFetching };
}

export interface OpenTrace {
  readonly reading: UseQueryResult<readonly SpanHead[]>;
  readonly place: SpanPlace;
  readonly tree: TraceTree | null;
  readonly lines: readonly Line[];
  readonly selected: number;
  readonly found: readonly number[] | null;
  /** Whether the contents are still being searched, and whether that failed. */
  readonly isFinding: boolean;
  readonly hasFailed: boolean;
  readonly isFiltered: boolean;
  readonly window: Window | null;
  setWindow(window: Window | null): void;
  select(span: number): void;
  fold(line: Line, isFolded: boolean): void;
  unfoldTo(level: number): void;
  toggleFilter(): void;
  step(spans: readonly number[], by: 1 | -1, what: string): void;
}

function usePlace({ organization, source, root, version }: TracePanelProps): SpanPlace {
  return useMemo(
    () => ({ organization, source: { kind: source.kind, id: source.id }, root, version: sentVersion(readVersion(version)) }),
    [organization, source.kind, source.id, root, version],
  );
}

/** What is folded and filtered, and the lines that follow. */
function useFolding(tree: TraceTree | null, only: ReadonlySet<number> | null) {
  const [folding, setFolding] = useState<Folding>(NOTHING_FOLDED);
  const shown = useMemo(() => ({ ...folding, only }), [folding, only]);
  const lines = useMemo(() => (tree === null ? [] : linesOf(tree, shown)), [tree, shown]);
  return { folding, setFolding, lines };
}

const spanIn = (tree: TraceTree | null, view: TraceView): number => {
  if (tree === null || tree.order.length === 0) return NONE;
  const named = view.span === "" ? undefined : tree.indexOf.get(view.span);
  return named ?? (tree.root === NONE ? (tree.order[0] ?? NONE) : tree.root);
};

/** Reads the spans before and after the selected one while nothing else is to be done, so that a step shows them at once. */
function useNeighbours(place: SpanPlace, tree: TraceTree | null, lines: readonly Line[], selected: number): void {
  const client = useQueryClient();
  useEffect(() => {
    if (tree === null || selected === NONE) return undefined;
    const read = (): void => {
      const at = lines.findIndex((line) => line.span === selected);
      for (const line of at < 0 ? [] : [lines[at + 1], lines[at - 1]]) {
        const id = line === undefined ? undefined : tree.spans[line.span]?.id;
        if (id !== undefined) void client.prefetchQuery(spanQuery(place, id));
      }
    };
    const timer = window.setTimeout(read, NEIGHBOURS_MS);
    return () => window.clearTimeout(timer);
  }, [client, place, tree, lines, selected]);
}

export function useTrace(props: TracePanelProps): OpenTrace {
  const { view, onView } = props;
  const place = usePlace(props);
  const reading = useQuery(spansQuery(place));
  const tree = useMemo(() => (reading.data === undefined ? null : treeOf(reading.data)), [reading.data]);
  useGrowth(place, tree);
  const finding = useFound(place, tree, view.find);
  const { found } = finding;
  const [isFiltered, setFiltered] = useState(false);
  const only = useMemo(() => {
    if (!isFiltered || tree === null) return null;
    const errors = [...tree.order].filter((index) => tree.spans[index]?.hasError === true);
    return new Set(found ?? errors);
  }, [isFiltered, tree, found]);
  const { folding, setFolding, lines } = useFolding(tree, only);
  const [window, setWindow] = useState<Window | null>(null);
  useEffect(() => {
    setWindow(null);
    setFolding(NOTHING_FOLDED);
  }, [place, setFolding]);
  const selected = spanIn(tree, view);
  useNeighbours(place, tree, lines, selected);
  const latest = useRef(view);
  latest.current = view;
  const select = useCallback(
    (span: number) => {
      if (tree === null) return;
      setFolding((known) => unfoldedTo(tree, known, span));
      onView({ ...latest.current, span: span === tree.root ? "" : (tree.spans[span]?.spanId ?? "") });
    },
    [tree, onView, setFolding],
  );
  const fold = (line: Line, isFolded: boolean): void => {
    const key = line.others.length > 0 || folding.spread.has(line.span) ? "spread" : "folded";
    const next = new Set(folding[key]);
    if (isFolded === (key === "folded")) next.add(line.span);
    else next.delete(line.span);
    setFolding({ ...folding, [key]: next });
  };
  const unfoldTo = (level: number): void => {
    if (tree !== null) setFolding({ ...NOTHING_FOLDED, folded: foldedBelow(tree, level) });
  };
  const step = (spans: readonly number[], by: 1 | -1, what: string): void => {
    const next = tree === null ? null : nextOf(tree, spans, selected, by);
    if (next === null) announce(`There is no ${what}.`);
    else select(next);
  };
  const toggleFilter = (): void => setFiltered(!isFiltered);
  return { reading, place, tree, lines, selected, ...finding, isFiltered, window, setWindow, select, fold, unfoldTo, toggleFilter, step };
}

/** The part of the time that is shown. */
export const windowOf = (trace: OpenTrace): Window =>
  trace.window ?? (trace.tree === null ? { from: 0, to: 1 } : wholeOf(trace.tree));
