// The form of a review: one field for each score, a comment, and what sends it.
import { useEffect, useImperativeHandle, useRef, useState, type KeyboardEvent, type RefObject } from "react";
import type { ReviewItem, ReviewSource } from "../../../api/review";
import type { ReviewSettings, Score } from "../../../api/reviewScores";
import { Button, ButtonLink } from "../../../design/Button";
import { Empty } from "../../../design/Empty";
import { Kbd } from "../../../design/Kbd";
import { announce } from "../../../lib/store";
import { missing, picked, withAnswer, type Answer } from "../answers";
import { writeReviewState, type ReviewState } from "../url";
import type { Desk, Draft } from "../useDesk";
import { FIELD, ScoreField } from "./ScoreField";
import style from "./Form.module.css";
import { Reviews } from "./Reviews";

/** What keys do with the form, wherever the focus is. */
export interface FormActions {
  done(): void;
  pick(digit: number): void;
  move(by: 1 | -1): void;
}

export interface FormProps {
  readonly form: RefObject<FormActions | null>;
  readonly state: ReviewState;
  readonly source: ReviewSource;
  readonly row: ReviewItem;
  readonly scores: readonly Score[];
  /** What the person has sent before. */
  readonly before: Draft;
  readonly draft: Draft;
  readonly fault: string;
  readonly desk: Desk;
  readonly settings: ReviewSettings;
  /** Whether the person has sent a review of the row. */
  readonly isSent: boolean;
  readonly isOpenTo: (row: ReviewItem) => boolean;
}

const fieldsIn = (element: HTMLElement | null): readonly HTMLElement[] => [...(element?.querySelectorAll<HTMLElement>(`[${FIELD}]`) ?? [])];

/** Puts the focus into a field: on its chosen option, else on its first control. */
const focusField = (field: HTMLElement | undefined, preventScroll = false): void =>
  (field?.querySelector<HTMLElement>("input:checked") ?? field?.querySelector<HTMLElement>("input, textarea"))?.focus({ preventScroll });

const fieldAtFocus = (element: HTMLElement | null): number =>
  fieldsIn(element).findIndex((field) => field.contains(document.activeElement));

/** Whether an arrow leaves a text, because the caret is at its end or its begin. */
function leavesText(field: HTMLTextAreaElement, by: 1 | -1): boolean {
  const { selectionStart, selectionEnd, value } = field;
  return selectionStart === selectionEnd && selectionStart === (by > 0 ? value.length : 0);
}

function useForm({ form, row, scores, before, draft, desk, settings }: FormProps) {
  const element = useRef<HTMLElement>(null);
  const [answers, setAnswers] = useState(draft.answers);
  const [comment, setComment] = useState(draft.comment);
  const [fault, setFault] = useState("");
  const keep = (changed: Draft): void => void desk.drafts.set(row.id, changed);
  const answer = (id: string, given: Answer | null): void => {
    const changed = withAnswer(answers, id, given);
    setAnswers(changed);
    setFault("");
    keep({ answers: changed, comment });
  };
  const write = (text: string): void => {
    setComment(text);
    keep({ answers, comment: text });
  };
  const move = (by: 1 | -1): void => {
    const at = fieldAtFocus(element.current);
    const fields = fieldsIn(element.current);
    focusField(fields[at < 0 ? (by > 0 ? 0 : fields.length - 1) : Math.min(Math.max(at + by, 0), fields.length - 1)]);
  };
  /** The score that digits are for: the one with the focus, else the first without an answer. */
  const current = (): Score | undefined => scores[fieldAtFocus(element.current)] ?? missing(scores, answers)[0] ?? scores[0];
  const pick = (digit: number): void => {
    const score = current();
    const given = score === undefined ? undefined : picked(score, answers.get(score.id), digit);
    if (score === undefined || given === undefined) return;
    answer(score.id, given);
    const field = fieldsIn(element.current)[scores.indexOf(score)];
    if (field?.contains(document.activeElement) !== true) focusField(field);
  };
  const clear = (): void => {
    const score = scores[fieldAtFocus(element.current)];
    if (score !== undefined) answer(score.id, null);
  };
  const done = (): void => {
    const lacking = missing(scores, answers);
    const isNothing = lacking.length === scores.length && comment.trim() === "";
    const [first] = lacking;
    if (isNothing || (first !== undefined && settings.require_all_human_review_scores)) {
      const names = lacking.map(({ name }) => name).join(", ");
      const text = isNothing ? "Answer something first, or skip the row." : `Not answered yet: ${names}.`;
      setFault(text);
      announce(text);
      return focusField(fieldsIn(element.current)[first === undefined ? 0 : scores.indexOf(first)]);
    }
    desk.done(row, scores, before, { answers, comment });
  };
  useImperativeHandle(form, () => ({ done, pick, move }));
  useEffect(() => focusField(fieldsIn(element.current)[0], true), [row.id]);
  return { element, answers, comment, fault, answer, write, move, pick, clear, done };
}

type Held = ReturnType<typeof useForm>;

/** Carries out what a key means inside the form. Returns whether it means something. */
function runKey({ key, target }: KeyboardEvent, { move, pick, clear }: Held, desk: Desk): boolean {
  const by = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
  const isText = target instanceof HTMLTextAreaElement;
  if (by !== 0 && (!isText || leavesText(target, by))) move(by);
  else if (isText) return false;
  else if (/^[1-9]$/.test(key)) pick(Number(key));
  else if (key === "s") desk.skip();
  else if (key === "z") desk.back();
  else if (key === "Backspace") clear();
  else return false;
  return true;
}

function NoScores({ state }: { readonly state: ReviewState }) {
  const href = writeReviewState({ organization: state.organization, project: state.project, at: "scores" });
  return <Empty action={<ButtonLink href={href}>Create a score</ButtonLink>}>This row has no score that you give.</Empty>;
}

export function Form(props: FormProps) {
  const { state, source, row, scores, desk, isSent, isOpenTo } = props;
  const held = useForm(props);
  const { element, answers, comment, fault } = held;
  const failure = desk.failures.get(row.id);
  const wrong = fault || (failure === undefined ? props.fault : `The review was not saved: ${failure}`);
  const onKeyDown = (event: KeyboardEvent): void => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.nativeEvent.isComposing;
    if (isPlain && runKey(event, held, desk)) event.preventDefault();
  };
  return (
    <section ref={element} className={style["form"]} aria-label="Your review" onKeyDown={onKeyDown}>
      <div className={style["fields"]}>
        {scores.length === 0 && <NoScores state={state} />}
        {scores.map((score) => (
          <ScoreField key={score.id} score={score} answer={answers.get(score.id)} onAnswer={(given) => held.answer(score.id, given)} />
        ))}
        <label className={style["field"]} {...{ [FIELD]: "" }}>
          <span className={style["name"]}>Comment</span>
          <textarea rows={2} value={comment} onInput={(event) => held.write(event.currentTarget.value)} />
        </label>
        <Reviews {...{ source, row, scores, isSent }} isOpen={isOpenTo(row)} />
      </div>
      <p className={style["fault"]} role="alert">
        {wrong}
      </p>
      <div className={style["actions"]} role="group" aria-label="Go on">
        <Button look="quiet" disabled={desk.sitting.trail.length === 0} onClick={desk.back}>
          Back <Kbd keys="z" />
        </Button>
        <Button look="quiet" onClick={desk.skip}>
          Skip <Kbd keys="s" />
        </Button>
        <Button look="primary" onClick={held.done}>
          Done <Kbd keys="mod+Enter" />
        </Button>
      </div>
    </section>
  );
}
