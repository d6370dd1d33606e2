// All scores and metrics of the experiments, and of their groups, in figures.
import type { Compared, ComparedExperiment, GroupOfRows } from "../../../api/comparison";
import { classes } from "../../../design/classes";
import { Delta } from "../../../design/Delta";
import { Distribution } from "../../../design/Distribution";
import { exactCount } from "../../../lib/numbers";
import type { Judge } from "../judgements";
import { deltaText, valueText, type Measure } from "../measures";
import { changeOf, deviationOf, inColumns, meanOf, measuresIn, percentileOf } from "../summaries";
import { lineOf } from "../values";
import { Evidence } from "./Evidence";
import style from "./Summary.module.css";

interface SummaryProps {
  readonly compared: Compared;
  readonly judge: Judge;
  /** Opens the pair of a comparison key. */
  readonly onKey: (key: string) => void;
}

interface CellProps extends SummaryProps {
  readonly measure: Measure;
  readonly experiment: ComparedExperiment;
}

function FigureCell({ measure, experiment, compared, judge, onKey }: CellProps) {
  const deviation = deviationOf(experiment, measure);
  const p95 = percentileOf(experiment, measure);
  const comparison = compared.comparisons.find((one) => one.experiment === experiment.id);
  const change = comparison === undefined ? null : changeOf(comparison, measure);
  const distribution = experiment.distributions[measure.name];
  const base = compared.experiments.find(({ id }) => id === compared.base);
  const judgement = judge(experiment.id, measure, change);
  return (
    <td>
      <div className={style["figure"]}>
        <div className={style["numbers"]}>
          <span className={style["mean"]}>{valueText(measure, meanOf(experiment, measure))}</span>
          {deviation !== null && <span className={style["faint"]}> ±{valueText(measure, deviation)}</span>}
          {p95 !== null && <span className={style["faint"]}> p95 {valueText(measure, p95)}</span>}
          {change !== null && change.delta !== null && (
            <p className={style["change"]}>
              <Delta value={change.delta} text={deltaText(measure, change.delta)} tone={judgement.tone} />
            </p>
          )}
          <Evidence measure={measure} experiment={experiment.name} change={change} judgement={judgement} onOpen={onKey} />
          {change !== null && (
            <p className={classes(style["change"], style["faint"])}>
              ↑ {exactCount(change.up)} ↓ {exactCount(change.down)} = {exactCount(change.same)} of {exactCount(change.pairs)}
            </p>
          )}
        </div>
        {distribution !== undefined && (
          <Distribution
            label={`Distribution of ${measure.title} in ${experiment.name}`}
            counts={distribution}
            base={experiment.id === compared.base ? undefined : base?.distributions[measure.name]}
          />
        )}
      </div>
    </td>
  );
}

function Counts({ compared, experiments }: { readonly compared: Compared; readonly experiments: readonly ComparedExperiment[] }) {
  return (
    <>
      <tr>
        <th scope="row">Rows</th>
        {experiments.map(({ id, rows }) => {
          const comparison = compared.comparisons.find(({ experiment }) => experiment === id);
          return (
            <td key={id}>
              <span className={style["mean"]}>{exactCount(rows)}</span>
              {comparison !== undefined && (
                <span className={style["faint"]}>
                  {" "}
                  {exactCount(comparison.added)} new, {exactCount(comparison.missing)} missing
                </span>
              )}
            </td>
          );
        })}
      </tr>
      <tr>
        <th scope="row">Errors</th>
        {experiments.map(({ id, errors }) => (
          <td key={id} className={errors > 0 ? style["bad"] : undefined}>
            {exactCount(errors)}
          </td>
        ))}
      </tr>
    </>
  );
}

export function Summary(props: SummaryProps) {
  const { compared } = props;
  const experiments = inColumns(compared);
  return (
    <div className={style["scroll"]} tabIndex={0} role="region" aria-label="Summary">
      <table className={style["table"]}>
        <thead>
          <tr>
            <th scope="col">
              <span className="only-spoken">Measure</span>
            </th>
            {experiments.map(({ id, name }) => (
              <th key={id} scope="col">
                {name}
                {id === compared.base && <span className={style["faint"]}> base</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Counts compared={compared} experiments={experiments} />
          {measuresIn(compared).map((measure) => (
            <tr key={measure.name}>
              <th scope="row">{measure.title}</th>
              {experiments.map((experiment) => (
                <FigureCell key={experiment.id} {...props} measure={measure} experiment={experiment} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface GroupRowProps {
  readonly group: GroupOfRows;
  readonly scores: readonly Measure[];
  readonly experiments: readonly ComparedExperiment[];
  readonly base: string | null;
  readonly onGroup: (value: unknown) => void;
}

function GroupRow({ group, scores, experiments, base, onGroup }: GroupRowProps) {
  const of = (id: string | null) => group.experiments.find((one) => one.id === id);
  return (
    <tr>
      <th scope="row">
        <button type="button" className={style["value"]} title="Show the rows of this group" onClick={() => onGroup(group.value)}>
          {lineOf(group.value)}
        </button>
      </th>
      <td>{experiments.map(({ id }) => exactCount(of(id)?.rows ?? 0)).join(" / ")}</td>
      {scores.map((measure) => (
        <td key={measure.name}>
          {experiments.map(({ id, name }, index) => {
            const mean = of(id)?.scores[measure.name]?.mean ?? null;
            const before = of(base)?.scores[measure.name]?.mean ?? null;
            const delta = id === base || mean === null || before === null ? null : mean - before;
            return (
              <span key={id} title={`${name}: ${of(id)?.scores[measure.name]?.count ?? 0} rows`}>
                {index > 0 && <span className={style["faint"]}> → </span>}
                {valueText(measure, mean)}
                {delta !== null && (
                  <>
                    {" "}
                    <Delta value={delta} text={deltaText(measure, delta)} tone="none" />
                  </>
                )}
              </span>
            );
          })}
        </td>
      ))}
    </tr>
  );
}

interface GroupsProps {
  readonly compared: Compared;
  readonly group: string;
  readonly onGroup: (value: unknown) => void;
}

/** The means and counts of each value of a path. */
export function Groups({ compared, group, onGroup }: GroupsProps) {
  const experiments = inColumns(compared);
  const scores = measuresIn(compared).filter(({ unit }) => unit === "score");
  return (
    <div className={style["groups"]} tabIndex={0} role="region" aria-label={`Groups by ${group}`}>
      <table className={style["table"]}>
        <thead>
          <tr>
            <th scope="col">{group}</th>
            <th scope="col">Rows</th>
            {scores.map(({ name, title }) => (
              <th key={name} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {compared.groups.map((one, index) => (
            <GroupRow key={index} group={one} scores={scores} experiments={experiments} base={compared.base} onGroup={onGroup} />
          ))}
        </tbody>
      </table>
    </div>
  );
}
