// The requests of the logs that the first rows need, and the views.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { call } from "../../api/client";
import { runQuery, type Page } from "../../api/query";
import { readLogRow, type LogRow } from "../../api/rows";
import { hasPages, PAGE_ROWS, rowsOf, type LogsRequest } from "./request";
import type { View } from "./views";

/** A page of rows. */
export interface RowsPage {
  readonly rows: readonly LogRow[];
  /** Where the next page starts; empty after the last. */
  readonly cursor: string;
  /** The newest transaction that the read has seen. */
  readonly transaction: string;
}

export function pageOf(page: Page, request: LogsRequest): RowsPage {
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

export const viewsKey = (organization: string, projectId: string) => ["views", "logs", organization, projectId] as const;

export const viewsQuery = (organization: string, projectId: string) =>
  queryOptions({
    queryKey: viewsKey(organization, projectId),
    queryFn: async ({ signal }): Promise<readonly View[]> => {
      const path = `/v1/view?object_type=project&object_id=${projectId}&view_type=logs`;
      const { readViews } = await import("./viewRecords");
      return readViews(await call("GET", path, { organization, signal }));
    },
  });
