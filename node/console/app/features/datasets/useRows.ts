// The rows of a dataset as they are read: pages on demand, and what other people change meanwhile.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { readTransactions, type DatasetRow } from "../../api/datasets";
import { isAbort, problemOf } from "../../lib/errors";
import { faultOf } from "../../api/query";
import { cache } from "../../api/queries";
import type { Reading } from "../../lib/problem";
import { arrived, isDeletion, liveFrom, merged, vanished, type Live } from "./live";
import { countQuery, readAfter, rowsKey, rowsQuery, type DatasetPlace, type ListRequest } from "./queries";

const ASK_MS = 5000;
const NO_ROWS: readonly DatasetRow[] = [];

export interface Rows {
  readonly reading: Reading<readonly DatasetRow[]>;
  readonly total: number | undefined;
  readonly isReadingMore: boolean;
  readonly more: () => void;
  /** The newest transaction that is shown. */
  readonly last: string;
  /** Asks at once what has changed. */
  readonly ask: () => Promise<void>;
  readonly error: unknown;
}

interface LiveOptions {
  readonly place: DatasetPlace;
  readonly request: ListRequest;
  readonly read: readonly DatasetRow[];
  readonly start: string | undefined;
  /** Reads the list anew. */
  readonly restart: () => Promise<unknown>;
}

interface Kept {
  readonly read: readonly DatasetRow[];
  readonly live: Live;
}

/**
 * One question: what was written since, and if something was deleted, which of the shown rows are gone. Null if so much
 * was written that the list has to be read anew.
 */
async function asked({ place, request }: LiveOptions, kept: Kept, signal: AbortSignal): Promise<Live | null> {
  const { live, read } = kept;
  const page = await readAfter(place, request.filter, live.last, signal);
  if (page.cursor !== null) return null;
  const next = arrived(live, page.rows, page.transaction, read);
  if (next === live || !isDeletion(live, page.rows, page.transaction)) return next;
  const shown = merged(read, next).map((row) => row.id);
  const there = await readTransactions(place.organization, place.id, shown, signal);
  return vanished(next, shown.filter((id) => !there.has(id)));
}

/** Asks what has changed every few seconds while the page can be seen. An answer is waited for before the next question. */
function useLive(options: LiveOptions) {
  const { request, start, read } = options;
  const first = useMemo(() => liveFrom(start ?? "0"), [request, start]);
  const [state, setState] = useState<{ readonly from: Live; readonly live: Live }>({ from: first, live: first });
  const live = state.from === first ? state.live : first;
  const kept = useRef({ options, read, live });
  kept.current = { options, read, live };
  const running = useRef<Promise<void> | null>(null);
  const control = useRef(new AbortController());
  const askOnce = useCallback(async (): Promise<void> => {
    const { signal } = control.current;
    const before = kept.current;
    const next = await asked(before.options, before, signal);
    if (signal.aborted || next === before.live) return;
    if (next === null) await before.options.restart();
    else setState({ from: first, live: next });
  }, [first]);
  const ask = useCallback(async (): Promise<void> => {
    await running.current?.catch(() => undefined);
    await askOnce();
  }, [askOnce]);
  const isAsking = start !== undefined && request.version === "";
  useEffect(() => {
    if (!isAsking) return undefined;
    control.current = new AbortController();
    let timer = 0;
    const loop = (): void => {
      timer = window.setTimeout(() => {
        if (document.visibilityState !== "visible") return loop();
        running.current = askOnce();
        void running.current.catch(() => undefined).then(() => {
          running.current = null;
          if (!control.current.signal.aborted) loop();
        });
      }, ASK_MS);
    };
    loop();
    return () => {
      control.current.abort();
      window.clearTimeout(timer);
    };
  }, [isAsking, askOnce]);
  return { live, ask };
}

export function useRows(place: DatasetPlace, request: ListRequest): Rows {
  const query = useInfiniteQuery(rowsQuery(place, request));
  const pages = query.data?.pages;
  const read = useMemo(() => pages?.flatMap((page) => page.rows) ?? NO_ROWS, [pages]);
  const start = pages?.[0]?.transaction;
  const { live, ask } = useLive({ place, request, read, start, restart: query.refetch });
  const found = useMemo(() => merged(read, live), [read, live]);
  const shown = useRef(found);
  const isFaulty = pages === undefined && faultOf(query.error) !== null;
  if (pages !== undefined) shown.current = found;
  const rows = isFaulty ? shown.current : found;
  const { fetchNextPage, hasNextPage, isFetchingNextPage, isFetching } = query;
  const more = useCallback(() => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage]);
  const counted = useQuery({ ...countQuery(place, request, live.last), enabled: pages !== undefined && hasNextPage });
  const isFailed = query.error !== null && !isAbort(query.error);
  return {
    reading: {
      data: pages === undefined && !isFaulty ? undefined : rows,
      problem: isFailed && !isFaulty ? problemOf(query.error, query.errorUpdatedAt) : null,
      isReading: isFetching && !isFetchingNextPage,
      again: () => void query.refetch(),
      stop: () => void cache.cancelQueries({ queryKey: rowsKey(place, request) }),
    },
    total: hasNextPage ? counted.data : rows.length,
    isReadingMore: isFetchingNextPage,
    more,
    last: live.last,
    ask,
    error: query.error,
  };
}
