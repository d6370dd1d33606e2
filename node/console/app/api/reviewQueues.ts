// Calls about saved queues of reviews, which are views of a project.
import { call } from "./client";
import { isRecord, list, record, text, textOrNull, type Fields } from "./narrow";
import type { ReviewedKind } from "./review";

/** The rows of a queue: those of a kind that fulfil an expression. */
export interface QueueWhat {
  readonly name: string;
  readonly kind: ReviewedKind;
  /** An expression; empty for all rows. */
  readonly filter: string;
  /** Whether only the root span of each trace is reviewed. */
  readonly isRootOnly: boolean;
}

export interface SavedQueue extends QueueWhat {
  readonly id: string;
}

const VIEW_TYPES = { project_logs: "for_review_project_log", experiment: "for_review_experiments" } as const;
const KINDS = ["project_logs", "experiment"] as const;

const items = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function filterText(one: unknown): string {
  if (typeof one === "string") return one;
  return isRecord(one) ? (textOrNull(one, "text") ?? textOrNull(one, "btql") ?? "") : "";
}

const below = (fields: Fields, key: string): Fields => {
  const value = fields[key];
  return isRecord(value) ? value : {};
};

function readQueue(value: unknown, kind: ReviewedKind): SavedQueue {
  const view = record(value, "view");
  const search = below(below(view, "view_data"), "search");
  const filters = items(search["filter"]).map(filterText).filter((one) => one.trim() !== "");
  return {
    id: text(view, "id"),
    name: text(view, "name"),
    kind,
    filter: filters.length > 1 ? filters.map((one) => `(${one})`).join(" AND ") : (filters[0] ?? ""),
    isRootOnly: below(view, "options")["queryShape"] !== "spans",
  };
}

/** Reads the queues that are saved in a project. */
export async function readQueues(organization: string, projectId: string, signal: AbortSignal): Promise<readonly SavedQueue[]> {
  const ofKind = async (kind: ReviewedKind): Promise<readonly SavedQueue[]> => {
    const path = `/v1/view?object_type=project&object_id=${projectId}&view_type=${VIEW_TYPES[kind]}`;
    const answer = record(await call("GET", path, { organization, signal }), "views");
    return list(answer, "objects").map((value) => readQueue(value, kind));
  };
  return (await Promise.all(KINDS.map(ofKind))).flat();
}

const about = (projectId: string) => ({ object_type: "project", object_id: projectId });

/** Makes a queue, or changes the one that has an id. Returns its id. */
export async function saveQueue(organization: string, projectId: string, id: string | null, what: QueueWhat): Promise<string> {
  const { name, kind, filter, isRootOnly } = what;
  const body = {
    ...about(projectId),
    view_type: VIEW_TYPES[kind],
    name,
    view_data: { search: { filter: filter.trim() === "" ? [] : [{ text: filter, label: filter, originType: "btql" }] } },
    options: { queryShape: isRootOnly ? "traces" : "spans" },
  };
  const made = await (id === null
    ? call("POST", "/v1/view", { organization, body })
    : call("PATCH", `/v1/view/${id}`, { organization, body }));
  return text(record(made, "view"), "id");
}

export async function deleteQueue(organization: string, projectId: string, id: string): Promise<void> {
  await call("DELETE", `/v1/view/${id}`, { organization, body: about(projectId) });
}

/** Reads the ids of a project's newest experiments. */
export async function readExperimentIds(organization: string, projectId: string, limit: number, signal: AbortSignal) {
  const path = `/v1/experiment?project_id=${projectId}&limit=${limit}`;
  const answer = record(await call("GET", path, { organization, signal }), "experiments");
  return list(answer, "objects").map((value) => text(record(value, "experiment"), "id"));
}
