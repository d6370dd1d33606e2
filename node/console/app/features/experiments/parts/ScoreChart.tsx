// One score over the experiments, the oldest first.
import { Menu } from "../../../design/Menu";
import { Icon } from "../../../design/Icon";
import { Spark } from "../../../design/Spark";
import { score as scoreText } from "../../../lib/numbers";
import { scoreOf, type ListedExperiment } from "../listing";
import style from "../screen.module.css";

interface ScoreChartProps {
  readonly found: readonly ListedExperiment[];
  readonly scores: readonly string[];
  /** The score that is drawn. */
  readonly score: string;
  readonly href: (name: string) => string;
  readonly onScore: (score: string) => void;
}

/** More points than this would touch each other. */
const POINTS = 60;

export function ScoreChart({ found, scores, score, href, onScore }: ScoreChartProps) {
  const inTime = found
    .filter((one) => scoreOf(one, score) !== null)
    .toSorted((a, b) => Date.parse(a.experiment.created) - Date.parse(b.experiment.created))
    .slice(-POINTS);
  const byId = new Map(inTime.map((one) => [one.experiment.id, one.experiment]));
  const points = inTime.map((one) => ({ id: one.experiment.id, value: scoreOf(one, score)?.mean ?? null }));
  const baseline = inTime.find(({ isBaseline }) => isBaseline)?.experiment.id ?? null;
  const values = points.flatMap(({ value }) => (value === null ? [] : [value]));
  if (values.length < 2) return null;
  return (
    <section className={style["chart"]} aria-label={`${score} over time`}>
      <div className={style["chartHead"]}>
        <Menu
          label={`Score over time: ${score}`}
          button={
            <>
              {score} over time <Icon name="down" />
            </>
          }
          items={scores.map((name) => ({ id: name, title: name, isChosen: name === score, run: () => onScore(name) }))}
        />
        <span className={style["faint"]}>
          {scoreText(Math.min(...values))} to {scoreText(Math.max(...values))}
        </span>
      </div>
      <div className={style["chartBody"]}>
        <Spark
          label={`${score} of ${points.length} experiments`}
          points={points}
          current={baseline}
          href={(id) => href(byId.get(id)?.name ?? "")}
          title={(id, value) => `${byId.get(id)?.name ?? ""}: ${scoreText(value)}`}
        />
      </div>
    </section>
  );
}
