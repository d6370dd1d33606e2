// Filters that are too long for an address: the address names the record that keeps the filter.
import { queryOptions } from "@tanstack/react-query";
import { keep, readKept, type Keeper } from "../../api/kept";
import { text } from "../../api/narrow";
import { cache } from "../../api/queries";
import { KEPT } from "./url";

/** What a view holds a long filter under. */
export const KEPT_FILTER = "console_filter";

const keeperOf = (organization: string, projectId: string): Keeper => ({ organization, type: "project", id: projectId });

/** The filter that a view of the address stands for. */
export const keptFilterQuery = (organization: string, projectId: string, view: string) =>
  queryOptions({
    queryKey: ["kept filter", organization, projectId, view],
    queryFn: async ({ signal }): Promise<string> => {
      const kept = await readKept(keeperOf(organization, projectId), KEPT_FILTER, view.slice(KEPT.length), signal);
      if (kept === null) throw new Error("The record of this link has no filter.");
      return text(kept, "text");
    },
    staleTime: Infinity,
  });

/** Keeps a filter and returns what the address names it by. */
export async function keepFilter(organization: string, projectId: string, filter: string): Promise<string> {
  const view = `${KEPT}${await keep(keeperOf(organization, projectId), KEPT_FILTER, "Filter", { text: filter })}`;
  cache.setQueryData(keptFilterQuery(organization, projectId, view).queryKey, filter);
  return view;
}
