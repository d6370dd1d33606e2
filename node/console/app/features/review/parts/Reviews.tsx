// What reviewers gave the row, side by side. It is asked for when it is opened, and may be.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { problemOf } from "../../../lib/errors";
import type { ReviewItem, ReviewSource } from "../../../api/review";
import type { Score } from "../../../api/reviewScores";
import { NOTHING, score as scoreText } from "../../../lib/numbers";
import { answersOf, type Answer } from "../answers";
import { reviewsQuery } from "../queries";
import style from "./Form.module.css";

interface ReviewsProps {
  readonly source: ReviewSource;
  readonly row: ReviewItem;
  readonly scores: readonly Score[];
  readonly isSent: boolean;
  /** Whether others' reviews may be asked for. */
  readonly isOpen: boolean;
}

/** An answer in words: the name of an option, or the value. */
function words({ type, categories }: Score, answer: Answer | undefined): string {
  if (answer === undefined) return NOTHING;
  if (typeof answer !== "number") return typeof answer === "string" ? answer : answer.join(", ");
  const option = type === "categorical" ? categories.find(({ value }) => value === answer) : undefined;
  return option?.name ?? scoreText(answer);
}

function Table({ source, row, scores }: ReviewsProps) {
  const query = useQuery(reviewsQuery(source, row));
  if (query.error !== null) return <p className={style["fault"]}>{problemOf(query.error, 0).text}</p>;
  if (query.data === undefined) return <p className={style["hint"]}>Reading</p>;
  const { isHidden, reviews } = query.data;
  const sent = reviews.filter(({ isSubmitted }) => isSubmitted);
  if (sent.length === 0) return <p className={style["hint"]}>{isHidden ? "Others’ reviews are hidden." : "Nobody has sent a review."}</p>;
  return (
    <div className={style["scroll"]} role="region" aria-label="Reviews of the row" tabIndex={0}>
      <table className={style["table"]}>
        <thead>
          <tr>
            <th scope="col">Reviewer</th>
            {scores.map(({ id, name }) => (
              <th key={id} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sent.map((review) => {
            const answers = answersOf(scores, review);
            return (
              <tr key={review.id}>
                <th scope="row">{review.isMine ? "You" : review.reviewer}</th>
                {scores.map((score) => (
                  <td key={score.id}>{words(score, answers.get(score.id))}</td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function Reviews(props: ReviewsProps) {
  const [isShown, setShown] = useState(false);
  if (!props.isOpen) {
    return <p className={style["hint"]}>Others’ reviews are shown when yours is sent.</p>;
  }
  return (
    <details className={style["reviews"]} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>Reviews of everybody</summary>
      {isShown && <Table {...props} />}
    </details>
  );
}
