// The requests of playgrounds, by name.
import { queryOptions } from "@tanstack/react-query";
import { readDatasets, readRows } from "../../api/datasets";
import { isRecord } from "../../api/narrow";
import { findPlayground, readModels, readPlaygrounds, type PlayRows, type PlayScorer } from "../../api/playground";
import { readKeptRuns } from "../../api/playgroundRuns";
import { readPromptRecords, type PromptRecord } from "../../api/prompts";
import { cache } from "../../api/queries";
import { readSpan } from "../../api/spans";
import { rowOfDataset, ROWS_MAX } from "./rows";
import type { PlaygroundState } from "./url";

/** Where playgrounds are. */
export interface Place {
  readonly organization: string;
  /** The name of the project. */
  readonly project: string;
  readonly projectId: string;
}

const listKey = ({ organization, projectId }: Place) => ["playgrounds", organization, projectId] as const;

export const playgroundsQuery = (place: Place) =>
  queryOptions({
    queryKey: listKey(place),
    queryFn: ({ signal }) => readPlaygrounds(place.organization, place.projectId, signal),
  });

export const forgetPlaygrounds = (place: Place): Promise<void> => cache.invalidateQueries({ queryKey: listKey(place) });

/** A playground, read once when it is opened: from then on the page knows it best. */
export const playgroundQuery = (place: Place, id: string) =>
  queryOptions({
    queryKey: ["playground", place.organization, place.projectId, id],
    queryFn: async ({ signal }) => {
      const found = await findPlayground(place.organization, place.projectId, id, signal);
      const runs = found === null ? [] : await readKeptRuns(place.organization, found.id, signal);
      return found === null ? null : { record: found, runs };
    },
    staleTime: Infinity,
    gcTime: 0,
  });

export const modelsQuery = (place: Place) =>
  queryOptions({
    queryKey: ["models", place.organization, place.projectId],
    queryFn: ({ signal }) => readModels(place.organization, place.projectId, signal),
    staleTime: 60_000,
  });

/** The prompts and functions of the project. */
export const recordsQuery = (place: Place) =>
  queryOptions({
    queryKey: ["playground-prompts", place.organization, place.projectId],
    queryFn: ({ signal }) => readPromptRecords(place.organization, place.projectId, signal),
  });

export const datasetsQuery = (place: Place) =>
  queryOptions({
    queryKey: ["playground-datasets", place.organization, place.projectId],
    queryFn: ({ signal }) => readDatasets(place.organization, place.projectId, signal),
  });

/** The rows of a dataset, with the transaction at which they were read. */
export const rowsQuery = (place: Place, rows: PlayRows) => {
  const id = rows.kind === "dataset" ? rows.id : "";
  return queryOptions({
    queryKey: ["playground-rows", place.organization, id],
    queryFn: async ({ signal }) => {
      const page = await readRows(place.organization, id, { filter: [], version: "", limit: ROWS_MAX }, signal);
      return { rows: page.rows.map((row) => rowOfDataset(id, row)), isAll: page.cursor === null, version: page.transaction };
    },
    enabled: id !== "",
  });
};

export const spanQuery = (place: Place, { span, root, experiment }: PlaygroundState) =>
  queryOptions({
    queryKey: ["playground-span", place.organization, experiment, root, span],
    queryFn: ({ signal }) => {
      const source = experiment === "" ? ({ kind: "project_logs", id: place.projectId } as const) : ({ kind: "experiment", id: experiment } as const);
      return readSpan({ organization: place.organization, source, root, version: "" }, span, { signal });
    },
    staleTime: Infinity,
  });

const isPrompt = ({ kind, isInternal, hasData }: PromptRecord): boolean => kind === "prompt" && hasData && !isInternal;

const isJudge = ({ type, data }: PromptRecord): boolean => type === "scorer" || (type === "" && isRecord(data["parser"]));

/** The prompts that a playground can take over. */
export const promptsIn = (records: readonly PromptRecord[]): readonly PromptRecord[] =>
  records.filter((one) => isPrompt(one) && !isJudge(one));

/** The scorers that the server can run: prompts that judge, and functions of every organization; no code. */
export const scorersIn = (records: readonly PromptRecord[]): readonly PlayScorer[] =>
  records
    .filter((one) => !one.isInternal && (one.kind === "prompt" ? isPrompt(one) && isJudge(one) : one.kind === "global" && one.type === "scorer"))
    .map(({ id, name }) => ({ kind: "saved", id, name }));

export const forgetPrompts = (place: Place): Promise<void> => cache.invalidateQueries({ queryKey: recordsQuery(place).queryKey });
