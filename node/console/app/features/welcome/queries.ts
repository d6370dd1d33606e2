// The requests of the page that shows how to send traces.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { call } from "../../api/client";
import { aboutQuery, projectsQuery } from "../../api/queries";
import { columns, runQuery, sourceOf } from "../../api/query";
import { readMadeKey, type MadeKey, type Projects } from "../../api/schema";
import { arrivalOf, type Arrival } from "./arrival";

const FIRST_TRACE_MS = 700;
const PROJECT_MS = 700;

/** Makes a key of the person who is signed in. The server shows it this once. */
export const makeKey = async (organization: string, name: string): Promise<MadeKey> =>
  readMadeKey(await call("POST", "/v1/api_key", { organization, body: { name } }));

/** The root span of a project's newest trace; null if there is none. */
export const newestTraceQuery = (organization: string, projectId: string) =>
  queryOptions({
    queryKey: ["newest trace", organization, projectId],
    queryFn: async ({ signal }): Promise<string | null> => {
      const query = { select: columns("root_span_id"), from: sourceOf("project_logs", projectId, "summary"), limit: 1 };
      const root = (await runQuery(organization, query, { signal })).rows[0]?.["root_span_id"];
      return typeof root === "string" ? root : null;
    },
    staleTime: 0,
  });

export interface Watch {
  readonly projects: Projects | undefined;
  /** Null before the first answer. */
  readonly arrival: Arrival | null;
}

/**
 * Asks whether any trace exists until one does, then for the projects until the named one has a trace. Hidden tabs do
 * not ask.
 */
export function useWatch(organization: string, named: string): Watch {
  const about = useQuery({
    ...aboutQuery,
    staleTime: 0,
    refetchInterval: (query) => (query.state.data?.hasRows === true ? false : FIRST_TRACE_MS),
  });
  const hasRows = about.data?.hasRows === true;
  const projects = useQuery({
    ...projectsQuery(organization),
    staleTime: 0,
    refetchInterval: (query) => {
      const isHere = arrivalOf(query.state.data?.projects ?? [], named).kind === "here";
      return hasRows && !isHere ? PROJECT_MS : false;
    },
  });
  const { refetch } = projects;
  useEffect(() => {
    if (hasRows) void refetch();
  }, [hasRows, refetch]);
  const isKnown = projects.data !== undefined || projects.isError;
  return { projects: projects.data, arrival: isKnown ? arrivalOf(projects.data?.projects ?? [], named) : null };
}
