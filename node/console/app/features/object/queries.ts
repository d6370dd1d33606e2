// Finds the page of an object by its type and id.
import { queryOptions } from "@tanstack/react-query";
import { call } from "../../api/client";
import { record, text, type Fields } from "../../api/narrow";
import type { ObjectState } from "./url";

/** An object with the project that it is in. */
export interface FoundObject {
  readonly project: string;
  readonly name: string;
}

const TYPES: Readonly<Record<string, string>> = {
  project_logs: "project",
  project: "project",
  project_log: "project",
  experiment: "experiment",
  dataset: "dataset",
  prompt: "prompt",
  function: "function",
};

export const isKnownType = (type: string): boolean => Object.hasOwn(TYPES, type);

async function read(organization: string, kind: string, id: string, signal: AbortSignal): Promise<Fields> {
  return record(await call("GET", `/v1/${kind}/${encodeURIComponent(id)}`, { organization, signal }), kind);
}

export const objectQuery = (state: ObjectState) =>
  queryOptions({
    queryKey: ["object", state.organization, state.type, state.objectId],
    queryFn: async ({ signal }): Promise<FoundObject> => {
      const kind = TYPES[state.type] ?? "";
      const found = await read(state.organization, kind, state.objectId, signal);
      if (kind === "project") return { project: text(found, "name"), name: "" };
      const project = await read(state.organization, "project", text(found, "project_id"), signal);
      return { project: text(project, "name"), name: text(found, "name") };
    },
    enabled: isKnownType(state.type),
    staleTime: 60_000,
  });
