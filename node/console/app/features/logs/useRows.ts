// The rows of the list as they are read: pages on demand, and what comes after them.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { isAbort } from "../../lib/errors";
import { cache } from "../../api/queries";
import type { LogRow } from "../../api/rows";
import { useLatest } from "../../lib/commands";
import type { Reading } from "../../lib/problem";
import { problemIn } from "./faults";
import { hiddenRows } from "./hidden";
import { rowsKey, rowsQuery, type RowsPage } from "./queries";
import type { LogsRequest } from "./request";
import { arrived, isLater, keyOf, merged, released, tailFrom, type Tail } from "./tail";

export interface Rows {
  readonly reading: Reading<readonly LogRow[]>;
  /** Whether the rows are those of an earlier request, shown until the newer are there. */
  readonly isOld: boolean;
  readonly hasMore: boolean;
  readonly isReadingMore: boolean;
  readonly more: () => void;
  /** How many new rows wait. */
  readonly waiting: number;
  readonly release: () => void;
  readonly error: unknown;
}

const NO_ROWS: readonly LogRow[] = [];

interface TailOptions {
  readonly organization: string;
  readonly request: LogsRequest;
  readonly read: readonly LogRow[];
  /** The transaction after which rows are new; undefined while nothing was read. */
  readonly start: string | undefined;
  readonly isOn: boolean;
  readonly isAtTop: () => boolean;
}

/** Takes new rows in while the list is followed. The code that follows is loaded then. */
function useTail({ organization, request, read, start, isOn, isAtTop }: TailOptions) {
  const [state, setState] = useState<{ readonly request: LogsRequest; readonly tail: Tail } | null>(null);
  const first = useMemo(() => tailFrom(start ?? "0"), [request, start]);
  // A list that was read again holds what came before.
  const current = (one: typeof state): Tail => (one?.request === request && isLater(one.tail.last, first.last) ? one.tail : first);
  const tail = current(state);
  const known = useMemo(() => new Set(read.map((row) => keyOf(row, request.shape))), [read, request]);
  const latest = useRef({ current, tail });
  latest.current = { current, tail };
  const take = useLatest((page: RowsPage): void =>
    setState((before) => {
      const tail = arrived(latest.current.current(before), page.rows, page.transaction, known, request.shape, isAtTop());
      return { request, tail };
    }),
  );
  const isFollowing = isOn && start !== undefined;
  useEffect(() => {
    if (!isFollowing) return undefined;
    const control = new AbortController();
    void import("./following").then(
      ({ followRows }) => followRows({ organization, request, last: () => latest.current.tail.last, take, signal: control.signal }),
      () => undefined,
    );
    return () => control.abort();
  }, [isFollowing, organization, request, take]);
  const release = useCallback(() => setState({ request, tail: released(tail) }), [request, tail]);
  return { tail, release };
}

interface RowsOptions {
  readonly organization: string;
  readonly request: LogsRequest;
  readonly isLive: boolean;
  readonly isAtTop: () => boolean;
  readonly isEnabled: boolean;
  /** Called when so many rows came that the list had better be read anew. */
  readonly onFull: () => void;
}

/** How many rows may come to a list before it is read anew: an hour of many rows stays small. */
const MOST_SHOWN = 1000;

export function useRows({ organization, request, isLive, isAtTop, isEnabled, onFull }: RowsOptions): Rows {
  const key = rowsKey(organization, request);
  const query = useInfiniteQuery({
    ...rowsQuery(organization, request),
    placeholderData: (before) => before,
    enabled: isEnabled,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
  const pages = query.data?.pages;
  const read = useMemo(() => pages?.flatMap((page) => page.rows) ?? NO_ROWS, [pages]);
  const isOld = query.isPlaceholderData;
  const start = isOld ? undefined : pages?.[0]?.transaction;
  const { tail, release } = useTail({ organization, request, read, start, isOn: isLive, isAtTop });
  const hidden = hiddenRows.value;
  const rows = useMemo(() => {
    const all = isOld ? read : merged(read, tail, request.shape);
    return hidden.size === 0 ? all : all.filter((row) => !hidden.has(keyOf(row, request.shape)));
  }, [isOld, read, tail, request, hidden]);
  const isFull = tail.shown.length > MOST_SHOWN;
  useEffect(() => {
    if (isFull && isAtTop()) onFull();
  }, [isFull, tail, isAtTop, onFull]);
  const { fetchNextPage, hasNextPage, isFetchingNextPage, isFetching } = query;
  const more = useCallback(() => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage]);
  const isFailed = query.error !== null && !isAbort(query.error);
  const good = useRef<readonly LogRow[] | undefined>(undefined);
  if (pages !== undefined) good.current = rows;
  return {
    reading: {
      data: pages === undefined ? good.current : rows,
      problem: isFailed ? problemIn(query.error, query.errorUpdatedAt, request) : null,
      isReading: isFetching && !isFetchingNextPage,
      again: () => void query.refetch(),
      stop: () => void cache.cancelQueries({ queryKey: key }),
    },
    isOld: isOld || pages === undefined,
    hasMore: hasNextPage,
    isReadingMore: isFetchingNextPage,
    more,
    waiting: tail.waiting.length,
    release,
    error: query.error,
  };
}
