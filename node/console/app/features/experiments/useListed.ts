// Reads the experiments of a project with everything that the list tells of them.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { now } from "../../lib/time";
import { listed, scoreNames } from "./listing";
import { datasetsQuery, experimentsQuery, figuresQuery, peopleQuery, runningQuery, settingsQuery } from "./queries";
import type { ExperimentsState } from "./url";

export function useListed({ organization, filter, sort }: ExperimentsState, projectId: string) {
  const experiments = useQuery(experimentsQuery(organization, projectId));
  const all = useMemo(() => experiments.data ?? [], [experiments.data]);
  const counted = useQuery({ ...figuresQuery(organization, projectId, all), enabled: all.length > 0 });
  const running = useQuery(runningQuery(organization, projectId, all, counted.data)).data;
  const baseline = useQuery(settingsQuery(organization, projectId)).data?.baseline ?? null;
  const people = useQuery({ ...peopleQuery(organization, all), enabled: all.length > 0 }).data;
  const datasets = useQuery(datasetsQuery(organization, projectId)).data;
  const figures = useMemo(() => new Map([...(counted.data ?? []), ...(running ?? [])]), [counted.data, running]);
  const present = now.value;
  const found = useMemo(
    () =>
      listed(
        {
          experiments: all,
          figures,
          baseline,
          people: people ?? new Map<string, string>(),
          datasets: datasets?.names ?? new Map<string, string>(),
          datasetRows: datasets?.rows ?? new Map<string, number>(),
          now: Math.max(present, Date.now()),
        },
        filter,
        sort,
      ),
    [all, figures, baseline, people, datasets, present, filter, sort],
  );
  const scores = useMemo(() => scoreNames(figures.values()), [figures]);
  return { experiments, counted, all, found, scores, baseline };
}
