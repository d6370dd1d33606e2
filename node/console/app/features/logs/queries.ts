// The requests of the logs.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { call } from "../../api/client";
import { cache } from "../../api/queries";
import { columns, compared, ident, literal, runQuery, sourceOf, type Page } from "../../api/query";
import { readLogGroup, readLogRow, type LogGroup, type LogRow } from "../../api/rows";
import { readView, readViews, viewRecord, type View, type ViewedState } from "./views";
import { countOf, groupsOf, hasPages, newestOf, PAGE_ROWS, rowsOf, tailOf, type LogsRequest } from "./request";

/** A page of rows. */
export interface RowsPage {
  readonly rows: readonly LogRow[];
  /** Where the next page starts; empty after the last. */
  readonly cursor: string;
  /** The newest transaction that the read has seen. */
  readonly transaction: string;
}

function pageOf(page: Page, request: LogsRequest): RowsPage {
  const isFull = hasPages(request.sort) && page.rows.length >= PAGE_ROWS;
  return {
    rows: page.rows.map((row) => readLogRow(row, request.customs.length)),
    cursor: isFull ? (page.cursor ?? "") : "",
    transaction: page.transaction ?? "0",
  };
}

/** The key of everything that is read for a request, so that equal requests share it. */
export const rowsKey = (organization: string, request: LogsRequest) => ["logs", organization, request] as const;

/** The rows of a request, page by page. */
export const rowsQuery = (organization: string, request: LogsRequest) =>
  infiniteQueryOptions({
    queryKey: rowsKey(organization, request),
    queryFn: async ({ pageParam, signal }): Promise<RowsPage> =>
      pageOf(await runQuery(organization, rowsOf(request, pageParam), { signal, version: request.version }), request),
    initialPageParam: "",
    getNextPageParam: (page) => (page.cursor === "" ? null : page.cursor),
    staleTime: Infinity,
  });

export const readTail = async (
  organization: string,
  request: LogsRequest,
  transaction: string,
  signal: AbortSignal,
): Promise<RowsPage> => pageOf(await runQuery(organization, tailOf(request, transaction), { signal }), request);

export const groupsQuery = (organization: string, request: LogsRequest) =>
  queryOptions({
    queryKey: ["log groups", organization, request],
    queryFn: async ({ signal }): Promise<readonly LogGroup[]> => {
      const page = await runQuery(organization, groupsOf(request), { signal, version: request.version });
      return page.rows.map(readLogGroup);
    },
  });

/** How many rows a request finds. */
export const countQuery = (organization: string, request: LogsRequest) =>
  queryOptions({
    queryKey: ["log count", organization, request],
    queryFn: async ({ signal }): Promise<number> => {
      const page = await runQuery(organization, countOf(request), { signal, version: request.version });
      const count = page.rows[0]?.["n"];
      return typeof count === "number" ? count : 0;
    },
  });

/** When the newest row of the project was made, as ISO text; null if there is none. */
export const newestQuery = (organization: string, projectId: string) =>
  queryOptions({
    queryKey: ["newest row", organization, projectId],
    queryFn: async ({ signal }): Promise<string | null> => {
      const page = await runQuery(organization, newestOf(projectId), { signal });
      const newest = page.rows[0]?.["newest"];
      return typeof newest === "string" ? newest : null;
    },
  });

const viewsKey = (organization: string, projectId: string) => ["views", "logs", organization, projectId] as const;

export const viewsQuery = (organization: string, projectId: string) =>
  queryOptions({
    queryKey: viewsKey(organization, projectId),
    queryFn: async ({ signal }): Promise<readonly View[]> => {
      const path = `/v1/view?object_type=project&object_id=${projectId}&view_type=logs`;
      return readViews(await call("GET", path, { organization, signal }));
    },
  });

const ofProject = (projectId: string) => ({ object_type: "project", object_id: projectId });

/** Saves a view under a new name and returns its id. */
export async function makeView(organization: string, projectId: string, name: string, state: ViewedState): Promise<string> {
  const body = { ...ofProject(projectId), view_type: "logs", name, ...viewRecord(state) };
  const made = readView(await call("POST", "/v1/view", { organization, body }));
  await cache.invalidateQueries({ queryKey: viewsKey(organization, projectId) });
  return made.id;
}

/** Changes the name of a view, or what it restores. */
export async function changeView(
  organization: string,
  projectId: string,
  id: string,
  changed: Readonly<Record<string, unknown>>,
): Promise<void> {
  await call("PATCH", `/v1/view/${id}`, { organization, body: { ...ofProject(projectId), ...changed } });
  await cache.invalidateQueries({ queryKey: viewsKey(organization, projectId) });
}

export async function deleteView(organization: string, projectId: string, id: string): Promise<void> {
  await call("DELETE", `/v1/view/${id}`, { organization, body: ofProject(projectId) });
  await cache.invalidateQueries({ queryKey: viewsKey(organization, projectId) });
}

/** Where a row is: its span and its trace. */
export interface RowPlace {
  readonly root: string;
  readonly span: string;
}

/** Finds a row by its id; null if there is none. */
export const rowQuery = (organization: string, projectId: string, id: string) =>
  queryOptions({
    queryKey: ["row", organization, projectId, id],
    queryFn: async ({ signal }): Promise<RowPlace | null> => {
      const query = {
        select: columns("root_span_id", "span_id"),
        from: sourceOf("project_logs", projectId),
        filter: [compared("eq", ident("id"), literal(id))],
        limit: 1,
      };
      const [row] = (await runQuery(organization, query, { signal })).rows;
      const root = row?.["root_span_id"];
      const span = row?.["span_id"];
      return typeof root === "string" && typeof span === "string" ? { root, span } : null;
    },
    staleTime: 0,
  });
