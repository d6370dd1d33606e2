// The requests that several screens make, by name, and the cache that they share.
import { QueryClient, queryOptions, type UseQueryResult } from "@tanstack/react-query";
import type { Reading } from "../lib/problem";
import { call } from "./client";
import { isAbort, isSignedOut, problemOf } from "../lib/errors";
import { armGate, disarmGate } from "./gate";
import { readAbout, readNamedProject, readProjects, readSession, type Session } from "./schema";

export const cache = new QueryClient({
  defaultOptions: {
    queries: { retry: false, networkMode: "always", staleTime: 10_000, refetchOnReconnect: true },
    mutations: { retry: false, networkMode: "always" },
  },
});

const SESSION = ["session"] as const;

export const aboutQuery = queryOptions({
  queryKey: ["about"],
  queryFn: async ({ signal }) => readAbout(await call("GET", "/console/about", { signal })),
  staleTime: 60_000,
});

/** Who is signed in. Before the first success, an answer 401 is an ordinary failure. */
export const sessionQuery = queryOptions({
  queryKey: SESSION,
  queryFn: async ({ signal }) => {
    const session = readSession(await call("GET", "/console/session", { signal }));
    armGate();
    return session;
  },
  staleTime: 300_000,
});

/** Asks who is signed in without opening the dialog that signs in. */
export const peekSession = async (signal: AbortSignal): Promise<Session> =>
  readSession(await call("GET", "/console/session", { signal, isWithoutGate: true }));

export const projectsQuery = (organization: string) =>
  queryOptions({
    queryKey: ["projects", organization],
    queryFn: async ({ signal }) => readProjects(await call("GET", "/console/projects", { organization, signal })),
  });

/** The project of a name, or null if the organization has none that this person may see. */
export const projectQuery = (organization: string, name: string) =>
  queryOptions({
    queryKey: ["project", organization, name],
    queryFn: async ({ signal }) => {
      const path = `/v1/project?project_name=${encodeURIComponent(name)}`;
      return readNamedProject(await call("GET", path, { organization, signal }));
    },
    staleTime: 60_000,
  });

/** Takes a new session over. What was read for somebody else is read again. */
export function enterSession(session: Session): void {
  const before = cache.getQueryData<Session>(SESSION);
  cache.setQueryData(SESSION, session);
  armGate();
  const isSame = before?.user.id === session.user.id;
  if (!isSame) void cache.resetQueries({ predicate: (query) => query.queryKey[0] !== SESSION[0] });
}

/** Forgets what was read and reads again who looks, so that the frame and its screen start anew. */
export function startAnew(): Promise<void> {
  cache.removeQueries({ predicate: ({ queryKey: [first] }) => first !== SESSION[0] && first !== "about" });
  return cache.resetQueries({ queryKey: SESSION });
}

/** Ends the session here or everywhere, and forgets everything that was read in it. */
export async function leaveSession(isEverywhere: boolean): Promise<void> {
  const path = isEverywhere ? "/console/session?everywhere=true" : "/console/session";
  try {
    await call("DELETE", path, { isWithoutGate: true });
  } catch (error) {
    if (!isSignedOut(error)) throw error;
  }
  disarmGate();
  cache.clear();
}

/** A query as screens show it. */
export function readingOf<Data>(query: UseQueryResult<Data>): Reading<Data> {
  const isFailed = query.error !== null && !isAbort(query.error);
  return {
    data: query.data,
    problem: isFailed ? problemOf(query.error, query.errorUpdatedAt) : null,
    isReading: query.isFetching,
    again: () => void query.refetch(),
    stop: () => void cache.cancelQueries(),
  };
}

/** A read that goes on until something else is there too, such as the names that it is shown with. */
export const until = <Data>(isThere: boolean, reading: Reading<Data>): Reading<Data> =>
  isThere ? reading : { ...reading, data: undefined, isReading: true };
