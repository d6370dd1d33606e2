// Filters that are too long for an address: the address names the record that keeps the filter.
import { queryOptions } from "@tanstack/react-query";

/** The filter that a view of the address stands for. */
export const keptFilterQuery = (organization: string, projectId: string, view: string) =>
  queryOptions({
    queryKey: ["kept filter", organization, projectId, view] as const,
    queryFn: async ({ signal }): Promise<string> =>
      (await import("../../api/keeping")).readFilter(organization, projectId, view, signal),
    staleTime: Infinity,
  });

/** Keeps a filter and returns what the address names it by. */
export const keepFilter = async (organization: string, projectId: string, filter: string): Promise<string> =>
  (await import("../../api/keeping")).keepFilter(organization, projectId, filter);
