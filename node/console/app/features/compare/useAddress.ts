// Goes to a state of the comparison. A filter that is too long for the address is kept in a record first.
import { queryOptions } from "@tanstack/react-query";
import { useEffect } from "react";
import { problemOf } from "../../lib/errors";
import { filterKey, keepFilter, readFilter } from "../../api/keeping";
import { toast } from "../../design/Toast";
import { isKept, MOST_IN_ADDRESS } from "../../lib/address";
import { useLatest } from "../../lib/commands";
import { location, navigate, type HistoryChange } from "../../lib/router";
import { compareUrl, type CompareState } from "./url";

export type Go = (after: CompareState, how: HistoryChange) => void;

/** The filter that the view of the address stands for. */
export const keptFilterQuery = (organization: string, projectId: string, view: string) =>
  queryOptions({
    queryKey: filterKey(organization, projectId, view),
    queryFn: ({ signal }) => readFilter(organization, projectId, view, signal),
    staleTime: Infinity,
  });

export function useGo(state: CompareState, projectId: string): Go {
  const go = useLatest((after: CompareState, how: HistoryChange): void => {
    const isLong = after.filter.length > MOST_IN_ADDRESS;
    if (!isLong || (after.filter === state.filter && isKept(after.view))) {
      return navigate(compareUrl.write({ ...after, view: isLong ? after.view : "" }), how);
    }
    const from = location.peek();
    keepFilter(after.organization, projectId, after.filter).then(
      (view) => {
        if (location.peek() === from) navigate(compareUrl.write({ ...after, view }), how);
      },
      (error: unknown) => toast(`The filter is too long for its link, and was not kept for it. ${problemOf(error, 0).text}`, true),
    );
  });
  const isBare = state.filter.length > MOST_IN_ADDRESS && !isKept(state.view);
  useEffect(() => {
    if (isBare) go(state, "replace");
  }, [isBare]);
  return go;
}
