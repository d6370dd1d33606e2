// Reads the experiments of the address, and their comparison.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef } from "react";
import type { Compared, Pair } from "../../api/comparison";
import { readingOf } from "../../api/queries";
import type { Experiment } from "../../api/experiments";
import { requestFault } from "./faults";
import { comparedQuery } from "./queries";
import { requestOf } from "./requests";
import type { CompareState } from "./url";

const NO_PAIRS: readonly Pair[] = [];

interface Found {
  readonly compared: Compared;
  readonly pairs: readonly Pair[];
}

/** What was found; while a request is refused, what the one before it found. */
function useKept(pages: readonly Compared[] | undefined, ids: string, isRefused: boolean): Found | null {
  const kept = useRef<(Found & { readonly ids: string }) | null>(null);
  const found = useMemo((): Found | null => {
    const [first] = pages ?? [];
    return first === undefined || pages === undefined ? null : { compared: first, pairs: pages.flatMap(({ rows }) => rows) };
  }, [pages]);
  useEffect(() => {
    if (found !== null) kept.current = { ...found, ids };
  }, [found, ids]);
  return found ?? (isRefused && kept.current?.ids === ids ? kept.current : null);
}

/** The comparison of experiments that are known: the one looked at, then the base, then the others. */
export function useCompared(state: CompareState, experiments: readonly Experiment[]) {
  const ids = experiments.map(({ id }) => id).join(" ");
  const { filter, group, score, only, sort, version } = state;
  const request = useMemo(
    () => requestOf({ filter, group, score, only, sort, version }, ids.split(" ")),
    [ids, filter, group, score, only, sort, version],
  );
  const query = useInfiniteQuery(comparedQuery(state.organization, request));
  const fault = requestFault(query.error, filter, group);
  const found = useKept(query.data?.pages, ids, fault !== null);
  const { hasNextPage, isFetchingNextPage, fetchNextPage, isPlaceholderData } = query;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !isPlaceholderData) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, isPlaceholderData, fetchNextPage]);
  const { problem, isReading, again, stop } = readingOf(query);
  const compared = found?.compared;
  return {
    request,
    pairs: found?.pairs ?? NO_PAIRS,
    compared,
    fault,
    reading: { data: compared, problem: fault === null || fault.at === "other" ? problem : null, isReading, again, stop },
    more,
    isReadingMore: isFetchingNextPage,
    isOld: isPlaceholderData || (query.data === undefined && found !== null),
  };
}

