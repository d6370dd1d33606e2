// The review of a queue's rows: how far it is, the row, and the form.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import type { OwnReview, ReviewSource } from "../../../api/review";
import type { Score } from "../../../api/reviewScores";
import { Button, ButtonLink } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { useCommands, useLatest } from "../../../lib/commands";
import { duration, exactCount } from "../../../lib/numbers";
import { reviewCommands } from "../commands";
import { contentsQuery, hiddenQuery } from "../queries";
import { tallyOf, type Queue, type QueueRead } from "../queues";
import { isConditional } from "../scores";
import { nextAfter, paceOf } from "../sitting";
import { writeReviewState } from "../url";
import { useDesk, type Desk as DeskOf, type DeskProps as Held } from "../useDesk";
import { AgreementDialog } from "./Agreement";
import type { FormActions } from "./Form";
import type { QueueProps } from "./Queue";
import { Row } from "./Row";
import style from "./Desk.module.css";

export interface DeskProps extends QueueProps, Held {
  readonly queue: Queue;
  readonly read: QueueRead;
  /** The scores that the person gives, whatever their conditions say. */
  readonly asked: readonly Score[];
  readonly state: QueueProps["state"];
}

/** Reads the next row, so that it is there at once. */
function useNextRow(desk: DeskOf, source: ReviewSource, asked: readonly Score[]): void {
  const client = useQueryClient();
  const next = nextAfter(desk.sitting, desk.sitting.at);
  useEffect(() => {
    const row = desk.order.find(({ id }) => id === next);
    if (row === undefined) return;
    const one = { ...source, ids: [row.objectId] };
    void client.prefetchQuery(contentsQuery(one, row.id));
    if (asked.some(isConditional)) void client.prefetchQuery(hiddenQuery(source, row, asked));
  }, [client, next]);
}

interface HeadProps {
  readonly props: DeskProps;
  readonly desk: DeskOf;
  readonly onAgreement: () => void;
}

/** The name of the queue, how much is done, and how fast. */
function Head({ props: { state, queue, read, own }, desk, onAgreement }: HeadProps) {
  const { all, done, waiting, isAbout } = tallyOf(read, own);
  const pace = paceOf(desk.times);
  const about = isAbout ? "about " : "";
  return (
    <header className={style["head"]}>
      <a className={style["up"]} href={writeReviewState({ ...state, at: "queues" })}>
        Review
      </a>
      <span aria-hidden="true">/</span>
      <h1 tabIndex={-1}>{queue.name}</h1>
      {all > 0 && <progress className={style["progress"]} max={all} value={done} aria-label="Reviewed rows" />}
      <span className={style["figures"]}>
        {all > 0 && `${exactCount(done)} of ${about}${exactCount(all)} done`}
        {pace !== null && `, ${duration(pace)} each`}
        {pace !== null && waiting > 0 && `, about ${duration(pace * waiting)} left`}
      </span>
      <Button look="quiet" onClick={onAgreement}>
        Agreement
      </Button>
    </header>
  );
}

/** What is shown when no row is left. */
function End({ props: { state, queue }, desk }: Omit<HeadProps, "onAgreement">) {
  const { done, skipped } = desk.sitting;
  const count = (number: number): string => (number === 1 ? "1 row" : `${exactCount(number)} rows`);
  const queues = <ButtonLink href={writeReviewState({ ...state, at: "queues" })}>Show the queues</ButtonLink>;
  if (skipped.size > 0) {
    const way = (
      <>
        <Button look="primary" onClick={desk.again}>
          Review what was skipped
        </Button>
        {queues}
      </>
    );
    return <Empty action={way}>You have skipped {count(skipped.size)}. Nothing else waits.</Empty>;
  }
  return (
    <Empty action={queues}>
      All done. {done.size > 0 ? `You have reviewed ${count(done.size)}.` : `No row waits in ${queue.name}.`}
    </Empty>
  );
}

/** Rows whose reviews were not saved, with the way back to each. */
function Failures({ desk }: { readonly desk: DeskOf }) {
  const others = [...desk.failures.keys()].filter((id) => id !== desk.sitting.at);
  if (others.length === 0) return null;
  return (
    <div className={style["failures"]} role="alert">
      {others.map((id) => (
        <p key={id}>
          The review of {desk.order.find((row) => row.id === id)?.name ?? id} was not saved.
          <Button onClick={() => desk.goTo(id)}>Show the row</Button>
        </p>
      ))}
    </div>
  );
}

/** Whether others' values of a row may be asked for: in a blind project only when one's own review has arrived. */
const isOpenTo = ({ settings, own }: DeskProps, desk: DeskOf, id: string, spanId: string): boolean =>
  !settings.blind_reviews || (own.get(spanId)?.isSubmitted === true && !desk.sending.has(id));

/** The spans whose reviews may be compared: all, or in a blind project those of which one's own review has arrived. */
function comparedSpans({ settings }: DeskProps, own: ReadonlyMap<string, OwnReview>, desk: DeskOf): readonly string[] | null {
  if (!settings.blind_reviews) return null;
  const pending = new Set(desk.order.filter(({ id }) => desk.sending.has(id)).map(({ spanId }) => spanId));
  return [...own].filter(([span, { isSubmitted }]) => isSubmitted && !pending.has(span)).map(([span]) => span);
}

export function Desk(props: DeskProps) {
  const desk = useDesk(props);
  const { at } = desk.sitting;
  const form = useRef<FormActions>(null);
  const [isTrace, setTrace] = useState(false);
  const [isCompared, setCompared] = useState(false);
  useNextRow(desk, props.source, props.asked);
  const act = useLatest((what: "done" | "skip" | "back" | "trace" | "pick" | "move", by: number) => {
    if (what === "back") desk.back();
    if (at === null) return;
    if (what === "skip") desk.skip();
    if (what === "trace") setTrace(!isTrace);
    if (what === "done") form.current?.done();
    if (what === "pick") form.current?.pick(by);
    if (what === "move") form.current?.move(by < 0 ? -1 : 1);
  });
  const commands = useMemo(
    () =>
      reviewCommands({
        done: () => act("done", 0),
        skip: () => act("skip", 0),
        back: () => act("back", 0),
        toggleTrace: () => act("trace", 0),
        pick: (digit) => act("pick", digit),
        move: (by) => act("move", by),
      }),
    [act],
  );
  useCommands(commands);
  return (
    <div className={style["desk"]}>
      <Head props={props} desk={desk} onAgreement={() => setCompared(true)} />
      <Failures desk={desk} />
      <div className={at === null ? undefined : style["main"]}>
        {at === null ? (
          <End props={props} desk={desk} />
        ) : (
          <Row
            key={at}
            {...props}
            {...{ desk, form, isTrace }}
            id={at}
            isOpenTo={(row) => isOpenTo(props, desk, row.id, row.spanId)}
            onTrace={setTrace}
          />
        )}
      </div>
      {isCompared && (
        <AgreementDialog
          source={props.source}
          spans={comparedSpans(props, props.own, desk)}
          scores={props.asked}
          onClose={() => setCompared(false)}
        />
      )}
    </div>
  );
}
