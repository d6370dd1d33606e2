// The requests of the section about usage.
import { queryOptions } from "@tanstack/react-query";
import { cache, projectsQuery } from "../../api/queries";
import { askSpending, askUsage, MOST_SPENT, type SpendingQuestion } from "../../api/usage";
import { unitOf, type Extent } from "../../lib/buckets";
import { boundsOf } from "../../lib/range";
import { spendingOf, widthOf, type Spending } from "./spending";

export const usageQuery = (organization: string) =>
  queryOptions({
    queryKey: ["usage", organization],
    queryFn: ({ signal }) => askUsage(organization, signal),
    refetchInterval: 60_000,
  });

export interface ReadSpending extends Spending {
  /** Whether there were more buckets and models than are read at once. */
  readonly isCut: boolean;
}

const YEAR_MS = 366 * 86_400_000;

export const spendingQuery = (organization: string, range: string, tzOffset: number) =>
  queryOptions({
    queryKey: ["spending", organization, range, tzOffset],
    staleTime: 60_000,
    queryFn: async ({ signal }): Promise<ReadSpending> => {
      const present = Date.now();
      const { from, to } = boundsOf(range, present);
      const end = to === null ? present : Date.parse(to);
      const extent: Extent = { from: from === null ? end - YEAR_MS : Date.parse(from), to: end };
      const all = await cache.fetchQuery(projectsQuery(organization));
      const projects = all.projects.filter(({ newest }) => newest !== null).map(({ id }) => id);
      const asked: SpendingQuestion = { projects, from, to, unit: unitOf(widthOf(extent)), tzOffset };
      const rows = await askSpending(organization, asked, signal);
      return { ...spendingOf(rows, extent, tzOffset), isCut: rows.length >= MOST_SPENT };
    },
  });
