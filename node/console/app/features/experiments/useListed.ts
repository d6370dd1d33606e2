// Reads the experiments of a project with everything that the list tells of them.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import type { Experiment, ExperimentFigures } from "../../api/experiments";
import { useLatest } from "../../lib/commands";
import { now } from "../../lib/time";
import { readVersion, sentVersion } from "../../lib/version";
import { listed, madeBefore, scoreNames } from "./listing";
import {
  datasetsQuery,
  experimentsQuery,
  figuresQuery,
  FOLLOWED_MAX,
  peopleQuery,
  runningOf,
  runningQuery,
  settingsQuery,
} from "./queries";
import type { ExperimentsState } from "./url";

const NONE: readonly Experiment[] = [];

/** What is counted of the running experiments while their rows come. Few are followed by streams, many are asked for. */
function useRunning(
  organization: string,
  projectId: string,
  experiments: readonly Experiment[],
  figures: ReadonlyMap<string, ExperimentFigures> | undefined,
) {
  const ids = runningOf(experiments, figures).map(({ id }) => id);
  const query = useQuery(runningQuery(organization, projectId, ids));
  const again = useLatest(() => void query.refetch());
  const counted = useRef(query.data);
  counted.current = query.data;
  const followed = ids.length > FOLLOWED_MAX ? "" : ids.join(" ");
  useEffect(() => {
    if (followed === "") return undefined;
    const control = new AbortController();
    const start = async (): Promise<void> => {
      const { follow } = await import("../../api/tail");
      for (const id of followed.split(" ")) {
        const follower = { last: () => counted.current?.get(id)?.last ?? "", read: async () => again() };
        if (!control.signal.aborted) follow({ organization, kind: "experiment", id, filter: "" }, follower, control.signal);
      }
    };
    void start().catch(() => undefined);
    return () => control.abort();
  }, [organization, followed, again]);
  return query.data;
}

export function useListed({ organization, filter, sort, version }: ExperimentsState, projectId: string) {
  const sent = sentVersion(readVersion(version));
  const experiments = useQuery(experimentsQuery(organization, projectId));
  const all = useMemo(() => madeBefore(experiments.data ?? [], sent), [experiments.data, sent]);
  const counted = useQuery({ ...figuresQuery(organization, projectId, all, sent), enabled: all.length > 0 });
  const running = useRunning(organization, projectId, sent === "" ? all : NONE, counted.data);
  const baseline = useQuery(settingsQuery(organization, projectId)).data?.baseline ?? null;
  const people = useQuery({ ...peopleQuery(organization, all), enabled: all.length > 0 }).data;
  const { data: datasets, isLoading } = useQuery(datasetsQuery(organization, projectId));
  const figures = useMemo(
    () => new Map([...(counted.data ?? []), ...(sent === "" ? (running ?? []) : [])]),
    [counted.data, running, sent],
  );
  const present = now.value;
  const found = useMemo(
    () =>
      listed(
        {
          experiments: all,
          figures,
          baseline,
          people: people ?? new Map<string, string>(),
          datasets: isLoading ? undefined : (datasets?.names ?? new Map<string, string>()),
          datasetRows: datasets?.rows ?? new Map<string, number>(),
          now: sent === "" ? Math.max(present, Date.now()) : Infinity,
        },
        filter,
        sort,
      ),
    [all, figures, baseline, people, datasets, isLoading, present, sent, filter, sort],
  );
  const scores = useMemo(() => scoreNames(figures.values()), [figures]);
  return { experiments, counted, all, found, scores, baseline };
}
