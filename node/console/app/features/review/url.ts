// The addresses of review: the queues, one queue with the row that is open, and the scores.
import { textParameter } from "../../lib/address";
import { pageAddress, type PagePlace } from "../../lib/pages";

interface Place {
  readonly organization: string;
  /** The name of the project. */
  readonly project: string;
}

export type ReviewState = Place &
  (
    | { readonly at: "queues" }
    | { readonly at: "scores" }
    | {
        readonly at: "queue";
        /** `assigned`, `pending`, or the id of a saved queue. */
        readonly queue: string;
        /** The id of the open row; empty for the first that waits. */
        readonly row: string;
      }
  );

const SCORES = "scores";

/** Reads the address of a page of review; null if there is none of this address. */
export function readReviewState({ organization, project, rest, query }: Pick<PagePlace, "organization" | "project" | "rest" | "query">): ReviewState | null {
  const [queue, ...more] = rest;
  const place = { organization, project };
  if (more.length > 0) return null;
  if (queue === undefined) return { ...place, at: "queues" };
  return queue === SCORES ? { ...place, at: "scores" } : { ...place, at: "queue", queue, row: textParameter(query, "r") };
}

export function writeReviewState(state: ReviewState): string {
  const { organization, project } = state;
  switch (state.at) {
    case "queues":
      return pageAddress("review", organization, project);
    case "scores":
      return pageAddress("review", organization, project, [SCORES]);
    case "queue":
      return pageAddress("review", organization, project, [state.queue], [["r", state.row, ""]]);
  }
}
