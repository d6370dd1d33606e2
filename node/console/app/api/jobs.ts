// Changes of everything that a filter finds, which the server carries out by itself.
import { call } from "./client";
import { list, record, text, textOrNull } from "./narrow";

export type JobAction =
  | { readonly kind: "tag"; readonly add: readonly string[]; readonly remove: readonly string[] }
  | { readonly kind: "assign"; readonly users: readonly string[] }
  | { readonly kind: "score"; readonly name: string; readonly value: number | null }
  | { readonly kind: "delete" }
  | { readonly kind: "add_to_dataset"; readonly dataset_id: string };

/** What a job changes, and how. */
export interface JobRequest {
  readonly object_type: "project_logs" | "experiment" | "dataset";
  readonly object_id: string;
  /** The expression that the rows fulfil; empty for all. */
  readonly filter: string;
  readonly shape: "traces" | "spans";
  readonly action: JobAction;
}

export const JOB_STATES = ["running", "done", "failed", "cancelled"] as const;

export type JobState = (typeof JOB_STATES)[number];

export interface Job {
  readonly id: string;
  /** What it does, in the words of the server. */
  readonly what: string;
  readonly state: JobState;
  /** How many rows it changes; null while they are counted. */
  readonly matched: number | null;
  readonly done: number;
  readonly started: string;
  readonly ended: string | null;
  readonly error: string | null;
}

const numberOrNull = (value: unknown): number | null => (typeof value === "number" ? value : null);

export function readJob(value: unknown): Job {
  const job = record(value, "job");
  return {
    id: text(job, "id"),
    what: textOrNull(job, "what") ?? "Change all that a filter finds",
    state: JOB_STATES.find((one) => one === job["state"]) ?? "running",
    matched: numberOrNull(job["matched"]),
    done: numberOrNull(job["done"]) ?? 0,
    started: textOrNull(job, "started") ?? "",
    ended: textOrNull(job, "ended"),
    error: textOrNull(job, "error"),
  };
}

const pathOf = (id: string): string => `/console/jobs/${encodeURIComponent(id)}`;

export const startJob = async (organization: string, request: JobRequest): Promise<Job> =>
  readJob(await call("POST", "/console/jobs", { organization, body: { ...request } }));

export const lookAtJob = async (organization: string, id: string, signal: AbortSignal): Promise<Job> =>
  readJob(await call("GET", pathOf(id), { organization, signal }));

/** The jobs of the person, the newest first. */
export const readJobs = async (organization: string, signal: AbortSignal): Promise<readonly Job[]> =>
  list(record(await call("GET", "/console/jobs", { organization, signal }), "jobs"), "jobs").map(readJob);

/** Ends a job. What it has done stays done. */
export async function cancelJob(organization: string, id: string): Promise<void> {
  await call("DELETE", pathOf(id), { organization });
}
