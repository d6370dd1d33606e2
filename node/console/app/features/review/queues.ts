// The queues of reviews: the built-in ones, what rows they hold, and how many of them wait.
import type { QueueWhat, SavedQueue } from "../../api/reviewQueues";
import { ASSIGNEES, STATUS, type OwnReview, type ReviewItem } from "../../api/review";
import { called, conjunction, list, literal, path } from "../../btql/write";

export interface Queue extends QueueWhat {
  readonly id: string;
  readonly isSaved: boolean;
}

/** The status that a row gets when its review is done. */
export const COMPLETE = "COMPLETE";
const DONE: readonly string[] = [COMPLETE, "COMPLETED", "APPROVED", "REJECTED"];

export const isDone = (status: string | null): boolean => status !== null && DONE.includes(status);

const status = path(STATUS);

/** The queues that every project has. */
export const builtInQueues = (userId: string): readonly Queue[] => {
  const queue = (id: string, name: string, filter: string): Queue => ({ id, name, filter, kind: "project_logs", isRootOnly: false, isSaved: false });
  return [
    queue("assigned", "Assigned to me", `${path(ASSIGNEES)} INCLUDES ${literal(userId)}`),
    queue("pending", "All pending", `${status} IS NOT NULL`),
  ];
};

export const savedQueue = (queue: SavedQueue): Queue => ({ ...queue, isSaved: true });

const type = path(["span_attributes", "type"]);

/** The condition of the rows of a queue, whether they wait or not. Reviews themselves are none. */
export const allOf = ({ filter, isRootOnly }: Queue): string =>
  conjunction([filter, `(${type} IS NULL OR ${type} != ${literal("review")})`, isRootOnly ? "is_root" : ""]);

/** The condition of the rows of a queue whose review is not done. */
export const openOf = (queue: Queue): string =>
  conjunction([allOf(queue), `(${status} IS NULL OR NOT ${called("coalesce", status, literal(""))} IN ${list(DONE)})`]);

export interface Tally {
  readonly all: number;
  readonly done: number;
  readonly waiting: number;
  /** Whether more rows wait than were read, so that the numbers are not exact. */
  readonly isAbout: boolean;
}

/** What was read of a queue: the rows by their status, and those that wait as far as they were read. */
export interface QueueRead {
  readonly counts: ReadonlyMap<string | null, number>;
  readonly items: readonly ReviewItem[];
}

/** The rows that wait for somebody: those whose review is not done, and of which they have sent none. */
export const waitingFor = ({ items }: QueueRead, own: ReadonlyMap<string, OwnReview>): readonly ReviewItem[] =>
  items.filter(({ spanId }) => own.get(spanId)?.isSubmitted !== true);

export function tallyOf(read: QueueRead, own: ReadonlyMap<string, OwnReview>): Tally {
  const entries = [...read.counts];
  const all = entries.reduce((total, [, count]) => total + count, 0);
  const finished = entries.reduce((total, [one, count]) => total + (isDone(one) ? count : 0), 0);
  const open = Math.max(all - finished, read.items.length);
  const waiting = waitingFor(read, own).length + open - read.items.length;
  return { all: finished + open, done: finished + open - waiting, waiting, isAbout: open > read.items.length };
}

/** Whether the review of a row is done when somebody has sent theirs: everybody has whom it was assigned to. */
export const isAllSent = (assignees: readonly string[], senders: readonly string[]): boolean =>
  assignees.every((id) => senders.includes(id));
