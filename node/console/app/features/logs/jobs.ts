// Jobs over all that the filter finds: how they are started, and what is known of those that run.
import { signal } from "@preact/signals";
import { cancelJob, lookAtJob, readJobs, startJob, type Job, type JobAction } from "../../api/jobs";
import { ApiError, NoAnswer, problemOf } from "../../lib/errors";
import { literal, path, conjunction } from "../../btql/write";
import { toast } from "../../design/Toast";
import { exactCount } from "../../lib/numbers";
import type { Acting } from "./acting";
import { refreshLists, type Place } from "./bulk";
import { startLater } from "./deletions";
import type { LogsRequest } from "./request";

/** A job that runs, with the words for what it does. */
export interface RunningJob {
  readonly job: Job;
  readonly organization: string;
  readonly title: string;
}

export const runningJobs = signal<readonly RunningJob[]>([]);

/** How far a job is: `1,200 of 48,000`. */
export const progressWords = ({ matched, done }: Job): string =>
  matched === null ? exactCount(done) : `${exactCount(done)} of ${exactCount(matched)}`;

/** What is said of a job that has ended. */
export function endWords(title: string, job: Job): { readonly text: string; readonly isFailure: boolean } {
  const progress = progressWords(job);
  switch (job.state) {
    case "running":
      return { text: `${title}: ${progress}.`, isFailure: false };
    case "done":
      return { text: `${title} is done: ${progress}.`, isFailure: false };
    case "cancelled":
      return { text: `${title} was cancelled: ${progress}. What is done stays done.`, isFailure: false };
    case "failed":
      return { text: `${title} failed: ${progress}. ${job.error ?? "The server gives no reason."}`, isFailure: true };
  }
}

/** The jobs with one more, or with a newer state of one. */
export function withJob(jobs: readonly RunningJob[], one: RunningJob): readonly RunningJob[] {
  const isKnown = jobs.some(({ job }) => job.id === one.job.id);
  return isKnown ? jobs.map((other) => (other.job.id === one.job.id ? one : other)) : [...jobs, one];
}

/** Shows one more job. */
function add(one: RunningJob): void {
  runningJobs.value = withJob(runningJobs.peek(), one);
  take(one);
}

/**
 * Takes a state of a job in. The lists are read again when it has ended. An answer that comes after the end was said, such
 * as that of another look, changes nothing.
 */
function take(one: RunningJob): void {
  if (!runningJobs.peek().some(({ job }) => job.id === one.job.id)) return;
  if (one.job.state === "running") {
    runningJobs.value = withJob(runningJobs.peek(), one);
    return;
  }
  runningJobs.value = runningJobs.peek().filter(({ job }) => job.id !== one.job.id);
  const { text, isFailure } = endWords(one.title, one.job);
  toast(text, isFailure);
  void refreshLists(one.organization);
}

/** The expression of the rows that a list finds, with its range. */
export const matchingFilter = ({ from, to, filter }: Pick<LogsRequest, "from" | "to" | "filter">): string =>
  conjunction([
    from === null ? "" : `${path(["created"])} >= ${literal(from)}`,
    to === null ? "" : `${path(["created"])} < ${literal(to)}`,
    filter,
  ]);

async function start(place: Place, request: LogsRequest, action: JobAction, title: string): Promise<void> {
  const job = await startJob(place.organization, {
    object_type: "project_logs",
    object_id: place.projectId,
    filter: matchingFilter(request),
    shape: request.shape,
    action,
  });
  add({ job, organization: place.organization, title });
}

/** Acts on all that a list finds. */
export function actingOnAll(place: Place, request: LogsRequest, count: number, words: string): Acting {
  const run = (action: JobAction, title: string): Promise<void> => start(place, request, action, title);
  return {
    place,
    words,
    count,
    isTraces: request.shape === "traces",
    tag: (tag) => run({ kind: "tag", add: [tag], remove: [] }, `Tagging ${words} with ${tag}`),
    score: (name, value) => run({ kind: "score", name, value }, `Scoring ${words} with ${name}`),
    assign: (person) =>
      run(
        { kind: "assign", users: person === undefined ? [] : [person.id] },
        person === undefined ? `Taking ${words} from everybody` : `Assigning ${words} to ${person.name}`,
      ),
    addTo: (dataset) => run({ kind: "add_to_dataset", dataset_id: dataset.id }, `Adding ${words} to ${dataset.name}`),
    remove: () =>
      startLater(`${words} will be deleted, beginning in 10 seconds.`, () => run({ kind: "delete" }, `Deleting ${words}`)),
  };
}

/** The newer state of a job. One that its node has forgotten ended with the node. */
async function laterOf({ organization, job }: RunningJob, until: AbortSignal): Promise<Job> {
  try {
    return await lookAtJob(organization, job.id, until);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) {
      return { ...job, state: "failed", error: "The node that ran it was restarted. What is done stays done." };
    }
    if (error instanceof ApiError || error instanceof NoAnswer) return job;
    throw error;
  }
}

/** Looks at the jobs that run. */
export async function lookAtJobs(until: AbortSignal): Promise<void> {
  for (const one of runningJobs.peek()) {
    const job = await laterOf(one, until);
    if (!until.aborted) take({ ...one, job });
  }
}

/** Finds the jobs of the person that run, after the page was loaded. */
export async function findJobs(organization: string, until: AbortSignal): Promise<void> {
  const known = new Set(runningJobs.peek().map(({ job }) => job.id));
  for (const job of await readJobs(organization, until)) {
    if (job.state === "running" && !known.has(job.id)) add({ job, organization, title: job.what });
  }
}

/** Cancels a job, and shows how far it got. */
export async function endJob(one: RunningJob): Promise<void> {
  try {
    await cancelJob(one.organization, one.job.id);
    take({ ...one, job: await lookAtJob(one.organization, one.job.id, new AbortController().signal) });
  } catch (error) {
    toast(`${one.title} was not cancelled. ${problemOf(error, 0).text}`, true);
  }
}
