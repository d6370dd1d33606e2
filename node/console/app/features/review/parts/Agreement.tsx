// How far the reviewers of a queue's source agree, score by score.
import { useQuery } from "@tanstack/react-query";
import { askToSignIn } from "../../../api/gate";
import { readingOf } from "../../../api/queries";
import type { Rating, ReviewSource } from "../../../api/review";
import type { Score } from "../../../api/reviewScores";
import { Dialog } from "../../../design/Dialog";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { exactCount, NOTHING, score as scoreText } from "../../../lib/numbers";
import { agreementOf, type Rated } from "../agreement";
import { answersOf } from "../answers";
import { ratingsQuery } from "../queries";
import style from "./Form.module.css";

interface AgreementProps {
  readonly source: ReviewSource;
  /** The spans whose reviews are compared; null for all. */
  readonly spans: readonly string[] | null;
  readonly scores: readonly Score[];
  readonly onClose: () => void;
}

/** The answers to a score, as values that can be compared. */
function ratedOf(score: Score, scores: readonly Score[], ratings: readonly Rating[]): readonly Rated[] {
  return ratings.flatMap((rating) => {
    const answer = answersOf(scores, rating).get(score.id);
    if (answer === undefined) return [];
    return [{ of: rating.of, value: typeof answer === "object" ? [...answer].sort().join("\n") : answer }];
  });
}

const percent = (share: number | null): string => (share === null ? NOTHING : `${Math.round(share * 100)} %`);

export function AgreementDialog({ source, spans, scores, onClose }: AgreementProps) {
  const query = useQuery(ratingsQuery(source, spans));
  const compared = scores.filter(({ type }) => type !== "free-form");
  return (
    <Dialog title="Agreement of the reviewers" form="wide" onClose={onClose}>
      <Loaded reading={readingOf(query)} skeleton={<Skeleton lines={[[16, 12, 8], [16, 12, 8]]} />} onSignIn={() => void askToSignIn().then(() => query.refetch())}>
        {(ratings) => (
          <div className={style["scroll"]} role="region" aria-label="Agreement by score" tabIndex={0}>
            <table className={style["table"]}>
              <thead>
                <tr>
                  {["Score", "Rows with several reviews", "Equal", "Mean difference", "Alpha"].map((title) => (
                    <th key={title} scope="col">
                      {title}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {compared.map((score) => {
                  const { rows, equal, difference, alpha } = agreementOf(ratedOf(score, scores, ratings), score.type === "slider");
                  return (
                    <tr key={score.id}>
                      <th scope="row">{score.name}</th>
                      <td>{exactCount(rows)}</td>
                      <td>{percent(equal)}</td>
                      <td>{scoreText(difference)}</td>
                      <td>{scoreText(alpha)}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
        )}
      </Loaded>
      <p className={style["hint"]}>
        {spans === null ? "All reviews that were sent count." : "Only rows count of which you have sent a review."} Alpha is Krippendorff’s:
        1 for full agreement, 0 for that of chance.
      </p>
    </Dialog>
  );
}
