// Where somebody who reviews is in a queue, what they have answered, and what became of it.
import { useEffect, useRef, useState } from "react";
import { problemOf } from "../../lib/errors";
import type { OwnReview, ReviewItem, ReviewSource } from "../../api/review";
import type { ReviewSettings, Score } from "../../api/reviewScores";
import { toast } from "../../design/Toast";
import { navigate } from "../../lib/router";
import { announce } from "../../lib/store";
import { bodyOf, type Answers } from "./answers";
import type { Place } from "./queries";
import { send, StatusNotSet } from "./sending";
import { again, back, begin, finish, goTo, reopen, skip, waitingIn, type Sitting } from "./sitting";
import { writeReviewState, type ReviewState } from "./url";

export interface Draft {
  readonly answers: Answers;
  readonly comment: string;
}

export interface DeskProps {
  readonly state: Extract<ReviewState, { at: "queue" }>;
  readonly place: Place;
  readonly source: ReviewSource;
  readonly userId: string;
  /** The rows that wait, as they were when the queue was opened. */
  readonly items: readonly ReviewItem[];
  readonly own: ReadonlyMap<string, OwnReview>;
  readonly settings: ReviewSettings;
}

const NOTHING: Answers = new Map();

/** Keeps the row that is shown in the address, and shows the row that the address names. */
function useAddress(state: DeskProps["state"], sitting: Sitting, onRow: (id: string) => void): void {
  useEffect(() => navigate(writeReviewState({ ...state, row: sitting.at ?? "" }), "replace"), [sitting.at]);
  const seen = useRef(state.row);
  useEffect(() => {
    if (state.row === seen.current) return;
    seen.current = state.row;
    if (state.row !== "" && state.row !== sitting.at) onRow(state.row);
  }, [state.row]);
}

const without = <Value>(map: ReadonlyMap<string, Value>, id: string): ReadonlyMap<string, Value> =>
  new Map([...map].filter(([one]) => one !== id));

export function useDesk({ state, place, source, userId, items, settings }: DeskProps) {
  const [order] = useState(() => items);
  const [sitting, setSitting] = useState(() => begin(order.map(({ id }) => id), state.row));
  const [failures, setFailures] = useState<ReadonlyMap<string, string>>(new Map());
  const [sending, setSending] = useState<ReadonlySet<string>>(new Set());
  const [times, setTimes] = useState<readonly number[]>([]);
  const drafts = useRef(new Map<string, Draft>());
  const shownAt = useRef(performance.now());
  useEffect(() => {
    shownAt.current = performance.now();
  }, [sitting.at]);
  useAddress(state, sitting, (id) => setSitting((now) => goTo(now, id)));

  const fail = (row: ReviewItem, error: unknown): void => {
    const isStatus = error instanceof StatusNotSet;
    const { text } = problemOf(isStatus ? error.reason : error, 0);
    if (isStatus) return toast(`The review of ${row.name} is saved, but the row still waits: ${text}`, true);
    setFailures((known) => new Map(known).set(row.id, text));
    setSitting((now) => reopen(now, row.id));
    announce(`The review of ${row.name} was not saved.`);
  };
  const done = (row: ReviewItem, shown: readonly Score[], before: Draft, draft: Draft): void => {
    const comment = draft.comment.trim();
    const isCommented = comment !== before.comment;
    const body = { ...bodyOf(shown, draft.answers, before.answers), ...(isCommented ? { comment } : {}), submitted: true };
    const given = bodyOf(shown, draft.answers, NOTHING);
    const review = { scores: given.scores ?? {}, expected: given.expected ?? null, metadata: { ...given.metadata, comment }, root: row.root, isSubmitted: true };
    drafts.current.set(row.id, draft);
    setFailures((known) => without(known, row.id));
    setSending((known) => new Set(known).add(row.id));
    setTimes((known) => [...known, performance.now() - shownAt.current]);
    const next = finish(sitting);
    setSitting(next);
    announce(next.at === null ? "That was the last row." : `${waitingIn(next)} waiting`);
    void send({ place, source, row, userId, body, review, isRequiringAll: settings.require_all_human_review_scores })
      .then(
        () => drafts.current.delete(row.id),
        (error: unknown) => fail(row, error),
      )
      .finally(() => setSending((known) => new Set([...known].filter((id) => id !== row.id))));
  };
  return {
    order,
    sitting,
    failures,
    sending,
    times,
    drafts: drafts.current,
    done,
    skip: () => setSitting(skip),
    back: () => setSitting(back),
    again: () => setSitting(again),
    goTo: (id: string) => setSitting((now) => goTo(now, id)),
  };
}

export type Desk = ReturnType<typeof useDesk>;
