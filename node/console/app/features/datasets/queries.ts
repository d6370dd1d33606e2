// The requests of the datasets' screens, by name.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { cache, projectQuery } from "../../api/queries";
import {
  countRows,
  LIST_PREVIEW,
  readDatasets,
  readFills,
  readNamedDataset,
  readRows,
  readUses,
  type DatasetPage,
  type Filter,
} from "../../api/datasets";
import { compared, ident, literal, written, type Expression } from "../../api/query";
import { countSnapshots, readSnapshots } from "../../api/snapshots";

export const PAGE = 100;

/** A dataset and where it is. */
export interface DatasetPlace {
  readonly organization: string;
  readonly project: string;
  readonly projectId: string;
  readonly id: string;
  readonly name: string;
}

export const listKey = (organization: string, projectId: string) => ["dataset-list", organization, projectId] as const;

export const datasetsQuery = (organization: string, projectId: string) =>
  queryOptions({
    queryKey: listKey(organization, projectId),
    queryFn: ({ signal }) => readDatasets(organization, projectId, signal),
  });

export const fillsQuery = (organization: string, projectId: string, ids: readonly string[]) =>
  queryOptions({
    queryKey: ["dataset-fills", organization, projectId, ids],
    queryFn: ({ signal }) => readFills(organization, ids, signal),
    placeholderData: (before) => before,
  });

export const usesQuery = (organization: string, projectId: string) =>
  queryOptions({
    queryKey: ["dataset-uses", organization, projectId],
    queryFn: ({ signal }) => readUses(organization, projectId, signal),
  });

export const namedQuery = (organization: string, projectId: string, name: string) =>
  queryOptions({
    queryKey: ["dataset", organization, projectId, name],
    queryFn: ({ signal }) => readNamedDataset(organization, projectId, name, signal),
  });

export const snapshotsQuery = (organization: string, datasetId: string) =>
  queryOptions({
    queryKey: ["dataset-snapshots", organization, datasetId],
    queryFn: ({ signal }) => readSnapshots(organization, datasetId, signal),
  });

export const snapshotCountsQuery = (organization: string) =>
  queryOptions({
    queryKey: ["dataset-snapshot-counts", organization],
    queryFn: ({ signal }) => countSnapshots(organization, signal),
  });

/** The condition of a filter; none for an empty text. */
export const filterOf = (filter: string): Filter => (filter.trim() === "" ? [] : [written(filter)]);

/** What of the list is asked for. */
export interface ListRequest {
  readonly filter: string;
  /** A transaction; empty for now. */
  readonly version: string;
}

export const rowsKey = ({ organization, id }: DatasetPlace, { filter, version }: ListRequest) =>
  ["dataset-rows", organization, id, version, filter] as const;

export const rowsQuery = (place: DatasetPlace, request: ListRequest) =>
  infiniteQueryOptions({
    queryKey: rowsKey(place, request),
    queryFn: ({ pageParam, signal }): Promise<DatasetPage> =>
      readRows(
        place.organization,
        place.id,
        { filter: filterOf(request.filter), version: request.version, limit: PAGE, cursor: pageParam, preview: LIST_PREVIEW },
        signal,
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.cursor,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });

export const countQuery = (place: DatasetPlace, request: ListRequest, transaction: string) =>
  queryOptions({
    queryKey: ["dataset-count", place.organization, place.id, request.version, request.filter, transaction],
    queryFn: ({ signal }) => countRows(place.organization, place.id, filterOf(request.filter), request.version, signal),
    placeholderData: (before) => before,
    staleTime: Infinity,
  });

const afterTransaction = (transaction: string): Expression =>
  compared("gt", ident("_xact_id"), literal(transaction));

const TAIL_PAGE = 500;

/**
 * Reads the rows that were written after a transaction, and tells of each whether it fulfils the filter. A page with a
 * cursor means that there are more: then the list is better read anew.
 */
export function readAfter(place: DatasetPlace, filter: string, transaction: string, signal: AbortSignal): Promise<DatasetPage> {
  const request = { filter: [afterTransaction(transaction)], version: "", limit: TAIL_PAGE, preview: LIST_PREVIEW };
  const match = filter.trim() === "" ? {} : { match: written(filter) };
  return readRows(place.organization, place.id, { ...request, ...match }, signal);
}

/** Reads everything again that tells of the datasets of a project. */
export async function refreshLists(organization: string, projectId: string): Promise<void> {
  const kinds = ["dataset-list", "dataset-fills", "dataset", "datasets", "dataset-uses"];
  await cache.invalidateQueries({
    predicate: ({ queryKey: [kind, of, project] }) =>
      typeof kind === "string" && kinds.includes(kind) && of === organization && project === projectId,
  });
}

/** Starts to read what the screens need, while their code and the session are still on their way. */
export async function prefetchDatasets(organization: string, project: string, name = ""): Promise<void> {
  const found = await cache.ensureQueryData(projectQuery(organization, project)).catch(() => null);
  if (found === null) return;
  if (name === "") await cache.prefetchQuery(datasetsQuery(organization, found.id));
  else await cache.prefetchQuery(namedQuery(organization, found.id, name));
}
