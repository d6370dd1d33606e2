// The requests of the logs that are made once the first rows are there.
import { queryOptions } from "@tanstack/react-query";
import { call } from "../../api/client";
import { cache } from "../../api/queries";
import { columns, compared, ident, literal, runQuery, sourceOf } from "../../api/query";
import { readLogGroup, type LogGroup } from "../../api/rows";
import { countOf, groupsOf, newestOf } from "./laterRequests";
import { viewsKey } from "./queries";
import type { LogsRequest } from "./request";
import { readView, viewRecord } from "./viewRecords";
import type { ViewedState } from "./views";

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

/** Makes a view restore what is shown. */
export const saveView = (organization: string, projectId: string, id: string, state: ViewedState): Promise<void> =>
  changeView(organization, projectId, id, viewRecord(state));

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
