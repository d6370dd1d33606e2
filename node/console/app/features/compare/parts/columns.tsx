// The columns of the table of pairs.
import type { Cell, Compared, ComparedExperiment, Pair } from "../../../api/comparison";
import { Delta } from "../../../design/Delta";
import type { GridColumn } from "../../../design/GridTypes";
import { NOTHING } from "../../../lib/numbers";
import { deltaText, measureOf, toneOf, valueText, type Measure } from "../measures";
import { hasError, markOf, trialsOf, type Mark, type TableRow } from "../rows";
import { inColumns, measuresIn } from "../summaries";
import { blockOf, errorLine, lineOf, spreadOf } from "../values";
import style from "./cells.module.css";
import { Outcomes } from "./Outcomes";

type Column = GridColumn<TableRow>;

const MARKS: Readonly<Record<Mark, readonly [sign: string, words: string]>> = {
  up: ["↑", "Up"],
  down: ["↓", "Down"],
  same: ["=", "Same"],
  new: ["new", "The base has no such row"],
  missing: ["missing", "Only the base has such a row"],
  none: ["", ""],
};

interface MarkProps {
  readonly row: TableRow;
  readonly base: string | null;
  readonly score: string;
  readonly isUnfolded: (row: TableRow) => boolean;
}

function MarkCell({ row, base, score, isUnfolded }: MarkProps) {
  if (row.trial !== null) return <span className={style["trialNumber"]}>#{row.trial + 1}</span>;
  const mark = markOf(row.pair, base, score);
  const [sign, words] = MARKS[mark];
  const direction = mark === "up" ? 1 : mark === "down" ? -1 : 0;
  const tone = toneOf(measureOf(score), direction);
  return (
    <span className={style["mark"]}>
      {trialsOf(row.pair) > 1 && (
        <span className={style["fold"]} aria-hidden="true">
          {isUnfolded(row) ? "▾" : "▸"}
        </span>
      )}
      {sign !== "" && (
        <span title={words} aria-label={words} role="img" className={tone === "none" ? style["faint"] : style[tone]}>
          {sign}
        </span>
      )}
      {hasError(row.pair) && (
        <span className={style["error"]} role="img" aria-label="Error" title="A trial failed">
          !
        </span>
      )}
    </span>
  );
}

const cellOf = ({ cells }: Pair, id: string | null): Cell | undefined => cells.find(({ experiment }) => experiment === id);

function valueIn(cell: Cell | undefined, name: string, trial: number | null): number | undefined {
  if (trial === null) return cell?.scores[name];
  const one = cell?.trials[trial];
  return name.startsWith("metrics.") ? one?.metrics[name.slice(8)] : one?.scores[name];
}

interface MeasureProps {
  readonly row: TableRow;
  readonly measure: Measure;
  readonly experiments: readonly ComparedExperiment[];
  readonly base: string | null;
}

/** A value of each experiment: the base first, then the others with their differences from it. */
function MeasureCell({ row, measure, experiments, base }: MeasureProps) {
  const { pair, trial } = row;
  return (
    <span className={style["values"]}>
      {experiments.map(({ id, name }, index) => {
        const cell = cellOf(pair, id);
        const value = valueIn(cell, measure.name, trial);
        const spread = trial !== null || cell === undefined ? null : spreadOf(cell, measure.name);
        const delta = trial === null ? cell?.deltas[measure.name] : undefined;
        const text = valueText(measure, value);
        const change = delta === undefined || id === base ? "" : `, ${deltaText(measure, delta)} against the base`;
        const exact = value === undefined ? " no value" : ` ${text}${change}`;
        const spreadWords = spread === null ? "" : `, ±${valueText(measure, spread)} over ${cell?.trials.length ?? 0} trials`;
        return (
          <span key={id} title={`${name}:${exact}${spreadWords}`}>
            {index > 0 && base !== null && index === 1 && <span className={style["faint"]}>→ </span>}
            <span className={value === undefined ? style["faint"] : undefined}>{text}</span>
            {spread !== null && spread > 0 && measure.unit === "score" && <span className={style["faint"]}> ±{valueText(measure, spread)}</span>}
            {delta !== undefined && id !== base && Math.abs(delta) > 1e-9 && (
              <>
                {" "}
                <Delta
                  value={delta}
                  text=""
                  spoken={deltaText(measure, delta)}
                  tone={measure.unit === "score" ? toneOf(measure, delta) : "none"}
                />
              </>
            )}
          </span>
        );
      })}
    </span>
  );
}

const Block = ({ value }: { readonly value: unknown }) => <pre className={style["block"]}>{blockOf(value)}</pre>;

const valueColumn = (id: string, title: string, width: number, read: (pair: Pair) => unknown): Column => ({
  id,
  title,
  width,
  grow: 1,
  cell: ({ pair, trial }) => {
    if (trial !== null) return null;
    const line = lineOf(read(pair));
    return line === NOTHING ? <span className={style["faint"]}>{NOTHING}</span> : line;
  },
  preview: ({ pair, trial }) => (trial !== null || read(pair) == null ? null : <Block value={read(pair)} />),
});

function outputColumn(experiment: ComparedExperiment, compared: Compared, isDiff: boolean): Column {
  const isBase = experiment.id === compared.base;
  const outcomeBlock = ({ pair, trial }: TableRow) => {
    const one = cellOf(pair, experiment.id)?.trials[trial ?? 0];
    if (one === undefined) return null;
    return one.error === null ? <Block value={one.output} /> : <span className={style["error"]}>{errorLine(one.error)}</span>;
  };
  return {
    id: `output:${experiment.id}`,
    title: isBase ? `${experiment.name} (base)` : experiment.name,
    width: 160,
    grow: 2,
    cell: ({ pair, trial }) => (
      <Outcomes
        cell={cellOf(pair, experiment.id)}
        base={isDiff && !isBase ? cellOf(pair, compared.base) : undefined}
        trial={trial}
      />
    ),
    preview: outcomeBlock,
  };
}

/** The metrics that have a column of their own. */
const SHOWN_METRICS: ReadonlySet<string> = new Set(["metrics.duration"]);

/** The width of a column of values, with room for the spread of those experiments that have trials. */
function widthOf({ unit }: Measure, { experiments, rows }: Compared): number {
  const others = experiments.length - 1;
  if (unit !== "score") return 76 + others * 88;
  const withTrials = experiments.filter(({ id }) => rows.some((pair) => (cellOf(pair, id)?.trials.length ?? 0) > 1));
  return 56 + others * 66 + withTrials.length * 42;
}

export interface ColumnOptions {
  readonly compared: Compared;
  readonly score: string;
  readonly isDiff: boolean;
  readonly isUnfolded: (row: TableRow) => boolean;
}

export function tableColumns({ compared, score, isDiff, isUnfolded }: ColumnOptions): readonly Column[] {
  const experiments = inColumns(compared);
  const base = compared.base;
  const hasExpected = compared.rows.some(({ expected }) => expected !== null);
  const measures = measuresIn(compared).filter(
    ({ name, unit }) => unit === "score" || SHOWN_METRICS.has(name) || name === score,
  );
  return [
    { id: "mark", title: "Kind", width: 64, cell: (row) => <MarkCell {...{ row, base, score, isUnfolded }} /> },
    valueColumn("input", "Input", 150, ({ input }) => input),
    ...(hasExpected ? [valueColumn("expected", "Expected", 110, ({ expected }) => expected)] : []),
    ...experiments.map((experiment) => outputColumn(experiment, compared, isDiff)),
    ...measures.map(
      (measure): Column => ({
        id: measure.name,
        title: measure.title,
        width: widthOf(measure, compared),
        cell: (row) => <MeasureCell {...{ row, measure, experiments, base }} />,
      }),
    ),
  ];
}
