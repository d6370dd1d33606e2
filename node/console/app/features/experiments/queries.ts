// The requests of the list of experiments.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { readDatasets, readFills } from "../../api/datasets";
import {
  changeComparisonSettings,
  readComparisonSettings,
  readExperimentFigures,
  readExperiments,
  readPeople,
  type Experiment,
  type ExperimentFigures,
} from "../../api/experiments";
import { cache, projectQuery } from "../../api/queries";
import { isRunning, withEmpty } from "./listing";

/** How often running experiments are counted again. */
export const RUNNING_MS = 3000;

export const listKey = (organization: string, projectId: string) => ["experiments", organization, projectId] as const;

export const experimentsQuery = (organization: string, projectId: string) =>
  queryOptions({
    queryKey: listKey(organization, projectId),
    queryFn: ({ signal }) => readExperiments(organization, projectId, signal),
  });

/** How many experiments are counted by one query. */
const PAGE = 50;

const pagesOf = <One>(all: readonly One[]): readonly (readonly One[])[] =>
  Array.from({ length: Math.ceil(all.length / PAGE) }, (_, index) => all.slice(index * PAGE, (index + 1) * PAGE));

/** Counts the rows of all experiments, fifty at once. */
async function readAllFigures(organization: string, ids: readonly string[], version: string, signal: AbortSignal) {
  const found = new Map<string, ExperimentFigures>();
  for (const page of pagesOf(ids)) {
    for (const [id, figures] of await readExperimentFigures(organization, page, version, signal)) found.set(id, figures);
  }
  return withEmpty(ids, found);
}

/** Counts the rows of experiments as of a version, as the server takes it. */
export const figuresQuery = (organization: string, projectId: string, experiments: readonly Experiment[], version: string) => {
  const ids = experiments.map(({ id }) => id);
  return queryOptions({
    queryKey: ["experiment figures", organization, projectId, ids, version] as const,
    queryFn: ({ signal }) => readAllFigures(organization, ids, version, signal),
    placeholderData: keepPreviousData,
  });
};

/** The experiments whose rows are still coming. */
export const runningOf = (experiments: readonly Experiment[], figures: ReadonlyMap<string, ExperimentFigures> | undefined) =>
  experiments.filter((one) => isRunning(one, figures?.get(one.id) ?? null, Date.now()));

/** The most experiments that are followed by streams: a browser opens few connections to a server. */
export const FOLLOWED_MAX = 2;

/** Counts the running experiments and nothing else: again and again if they are too many to be followed. */
export const runningQuery = (organization: string, projectId: string, ids: readonly string[]) =>
  queryOptions({
    queryKey: ["running experiments", organization, projectId, ids] as const,
    queryFn: ({ signal }) => readAllFigures(organization, ids, "", signal),
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    staleTime: 0,
    refetchInterval: ids.length > FOLLOWED_MAX ? RUNNING_MS : false,
  });

export const settingsQuery = (organization: string, projectId: string) =>
  queryOptions({
    queryKey: ["comparison settings", organization, projectId],
    queryFn: ({ signal }) => readComparisonSettings(organization, projectId, signal),
  });

export const peopleQuery = (organization: string, experiments: readonly Experiment[]) => {
  const ids = [...new Set(experiments.flatMap(({ userId }) => (userId === null ? [] : [userId])))].sort();
  return queryOptions({
    queryKey: ["people", organization, ids],
    queryFn: ({ signal }) => readPeople(organization, ids, signal),
    staleTime: 300_000,
  });
};

export interface KnownDatasets {
  readonly names: ReadonlyMap<string, string>;
  readonly rows: ReadonlyMap<string, number>;
}

export const datasetsQuery = (organization: string, projectId: string) =>
  queryOptions({
    queryKey: ["experiment datasets", organization, projectId],
    queryFn: async ({ signal }): Promise<KnownDatasets> => {
      const datasets = await readDatasets(organization, projectId, signal);
      const fills = await readFills(organization, datasets.map(({ id }) => id), signal);
      return {
        names: new Map(datasets.map(({ id, name }) => [id, name])),
        rows: new Map([...fills].map(([id, { rows }]) => [id, rows])),
      };
    },
    staleTime: 60_000,
  });

/** Makes an experiment the baseline of its project, or takes the baseline away. */
export async function setBaseline(organization: string, projectId: string, id: string | null): Promise<void> {
  const settings = await changeComparisonSettings(organization, projectId, { baseline_experiment_id: id });
  cache.setQueryData(settingsQuery(organization, projectId).queryKey, settings);
}

/** Reads again what tells of the experiments of a project. */
export async function refreshExperiments(organization: string, projectId: string): Promise<void> {
  await cache.invalidateQueries({ queryKey: listKey(organization, projectId) });
  await cache.invalidateQueries({ queryKey: ["dataset-uses", organization, projectId] });
}

/** Starts to read what the screen needs, while its code and the session are still on their way. */
export async function prefetchExperiments(organization: string, project: string): Promise<void> {
  const found = await cache.ensureQueryData(projectQuery(organization, project)).catch(() => null);
  if (found !== null) await cache.prefetchQuery(experimentsQuery(organization, found.id));
}
