// A card for each score and for the metrics that matter: the mean, how it changed, and filters by what changed.
import type { Change, Compared } from "../../../api/comparison";
import { classes } from "../../../design/classes";
import { Delta } from "../../../design/Delta";
import { Distribution } from "../../../design/Distribution";
import { exactCount } from "../../../lib/numbers";
import { changeTitle, type Judge } from "../judgements";
import { deltaText, valueText, type Measure } from "../measures";
import { changeOf, mainComparison, meanOf, measuresIn, percentileOf } from "../summaries";
import type { CompareState, ShownKind } from "../url";
import style from "./Cards.module.css";
import { Evidence } from "./Evidence";

interface CardsProps {
  readonly compared: Compared;
  /** The score or metric that kinds and order are about. */
  readonly score: string;
  readonly state: CompareState;
  readonly change: (part: Partial<CompareState>) => void;
  readonly judge: Judge;
  /** Opens the pair of a comparison key. */
  readonly onKey: (key: string) => void;
}

interface CardProps extends CardsProps {
  readonly measure: Measure;
}

/** The metrics that have a card; the summary has all. */
const CARDS: ReadonlySet<string> = new Set(["metrics.duration", "metrics.total_tokens", "metrics.estimated_cost"]);

const DIRECTIONS: readonly (readonly [kind: ShownKind & keyof Change, sign: string])[] = [
  ["up", "↑"],
  ["down", "↓"],
  ["same", "="],
];

interface CountsProps extends CardProps {
  readonly counts: Change;
}

/** The numbers of pairs that went up, went down and stayed, each of which filters by it. */
function Counts({ measure, counts, score, state, change }: CountsProps) {
  return (
    <div className={style["counts"]}>
      {DIRECTIONS.map(([kind, sign]) => {
        const isOn = state.only === kind && score === measure.name;
        const words = `${exactCount(Number(counts[kind]))} ${kind}`;
        return (
          <button
            key={kind}
            type="button"
            className={classes(style["count"], isOn && style["on"])}
            aria-pressed={isOn}
            aria-label={`${measure.title}: ${words}`}
            title={isOn ? "Show all rows" : `Show the rows in which ${measure.title} ${kind === "same" ? "stayed the same" : `went ${kind}`}`}
            onClick={() => change({ only: isOn ? "all" : kind, score: measure.name })}
          >
            <span aria-hidden="true">{sign}</span> {words}
          </button>
        );
      })}
    </div>
  );
}

function Figures({ measure, compared }: Pick<CardProps, "measure" | "compared">) {
  const main = compared.experiments[0];
  const base = compared.experiments.find(({ id }) => id === compared.base);
  if (main === undefined) return null;
  const p95 = percentileOf(main, measure);
  return (
    <p className={style["rest"]}>
      {base !== undefined && <>from {valueText(measure, meanOf(base, measure))}</>}
      {p95 !== null && `${base === undefined ? "" : ", "}p95 ${valueText(measure, p95)}`}
      {base === undefined && p95 === null && `${exactCount(main.scores[measure.name]?.count ?? 0)} rows`}
    </p>
  );
}

function Card(props: CardProps) {
  const { measure, compared, score, change, judge, onKey } = props;
  const main = compared.experiments[0];
  const comparison = mainComparison(compared);
  if (main === undefined) return null;
  const base = compared.experiments.find(({ id }) => id === compared.base);
  const counts = comparison === null ? null : changeOf(comparison, measure);
  const judgement = judge(main.id, measure, counts);
  const distribution = main.distributions[measure.name];
  return (
    <li className={classes(style["card"], measure.name === score && style["current"])}>
      <div className={style["head"]}>
        <button
          type="button"
          className={style["title"]}
          aria-pressed={measure.name === score}
          title={`Order the rows by ${measure.title}`}
          onClick={() => change({ score: measure.name })}
        >
          {measure.title}
        </button>
        <span className={style["mean"]}>{valueText(measure, meanOf(main, measure))}</span>
        {counts !== null && counts.delta !== null && (
          <Delta
            value={counts.delta}
            text={deltaText(measure, counts.delta)}
            tone={judgement.tone}
            title={changeTitle(measure, counts, judgement)}
          />
        )}
      </div>
      <div className={style["middle"]}>
        <Figures measure={measure} compared={compared} />
        {distribution !== undefined && (
          <Distribution
            label={`Distribution of ${measure.title}`}
            counts={distribution}
            base={base?.id === main.id ? undefined : base?.distributions[measure.name]}
          />
        )}
      </div>
      <Evidence measure={measure} change={counts} judgement={judgement} onOpen={onKey} />
      {counts !== null && <Counts {...props} counts={counts} />}
    </li>
  );
}

export function Cards(props: CardsProps) {
  const measures = measuresIn(props.compared).filter(({ name, unit }) => unit === "score" || CARDS.has(name));
  if (measures.length === 0) return null;
  return (
    <ul className={style["cards"]} aria-label="Scores and metrics">
      {measures.map((measure) => (
        <Card key={measure.name} {...props} measure={measure} />
      ))}
    </ul>
  );
}
