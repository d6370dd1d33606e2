// Sends reviews one after the other, while the person goes on.
import { cache } from "../../api/queries";
import { readReviews, setStatus, writeReview, type OwnReview, type ReviewBody, type ReviewItem, type ReviewSource } from "../../api/review";
import { COMPLETE, isAllSent, isDone } from "./queues";
import { ownQuery, reviewsQuery, type Place } from "./queries";

export interface Sent {
  readonly place: Place;
  readonly source: ReviewSource;
  readonly row: ReviewItem;
  readonly userId: string;
  readonly body: ReviewBody;
  /** The review as it stands afterwards. */
  readonly review: OwnReview;
  /** Whether the server alone decides when the review of a row is done. */
  readonly isRequiringAll: boolean;
}

let last: Promise<unknown> = Promise.resolve();

/** Puts a review among one's own, or takes it away again, without asking the server. Returns what was there. */
function keepOwn({ place, source, row, userId }: Sent, review: OwnReview | undefined): OwnReview | undefined {
  const key = ownQuery(place, source, userId).queryKey;
  const known = cache.getQueryData(key) ?? new Map<string, OwnReview>();
  const changed = new Map(known);
  if (review === undefined) changed.delete(row.spanId);
  else changed.set(row.spanId, review);
  void cache.cancelQueries({ queryKey: key });
  cache.setQueryData(key, changed);
  return known.get(row.spanId);
}

/** Sets a row that waits in the review list to done, if everybody has sent their review whom it was assigned to. */
async function complete({ source, row }: Sent): Promise<void> {
  const { assignees, reviews } = await readReviews(source, row);
  const senders = reviews.filter(({ isSubmitted }) => isSubmitted).map(({ reviewerId }) => reviewerId);
  if (isAllSent(assignees, senders)) await setStatus(source, row, COMPLETE);
}

async function write(sent: Sent, onSaved: () => void): Promise<void> {
  const { source, row, body, isRequiringAll } = sent;
  const { status, isComplete } = await writeReview(source, row, body);
  onSaved();
  if (!isRequiringAll && !isComplete && status !== null && !isDone(status)) await complete(sent);
  await cache.invalidateQueries({ queryKey: reviewsQuery(source, row).queryKey });
}

/** Sends a review after those that were sent before. One that fails is taken out of one's own again. */
export async function send(sent: Sent): Promise<void> {
  const before = keepOwn(sent, sent.review);
  let isSaved = false;
  const run = last.then(() => write(sent, () => (isSaved = true)));
  last = run.catch(() => undefined);
  try {
    await run;
  } catch (error) {
    if (!isSaved) keepOwn(sent, before);
    throw isSaved ? new StatusNotSet(error) : error;
  }
}

/** The review was saved, but the row still waits in the review list. */
export class StatusNotSet extends Error {
  constructor(readonly reason: unknown) {
    super("The status was not set.");
  }
}
