// One experiment of an open pair: its scores, and its output with what differs from the base.
import { useMemo } from "react";
import type { Cell, ComparedExperiment, Trial } from "../../../api/comparison";
import { classes } from "../../../design/classes";
import { Copy } from "../../../design/Copy";
import { Delta } from "../../../design/Delta";
import { diffOf } from "../../../design/DiffWords";
import { deltaText, toneOf, valueText, type Measure } from "../measures";
import { diffPaths, structureOf } from "../paths";
import { blockOf, lineOf } from "../values";
import { DiffText } from "./DiffText";
import style from "./Pair.module.css";

interface ColumnProps {
  readonly experiment: ComparedExperiment;
  readonly isBase: boolean;
  readonly cell: Cell | undefined;
  readonly trial: Trial | undefined;
  /** The trial of the base that the output is compared with, if differences are shown. */
  readonly before: Trial | undefined;
  readonly measures: readonly Measure[];
  readonly onTrial: (index: number) => void;
}

const measured = (trial: Trial | undefined, { name }: Measure): number | undefined =>
  name.startsWith("metrics.") ? trial?.metrics[name.slice(8)] : trial?.scores[name];

function Figures({ measures, trial, before, isBase }: Omit<ColumnProps, "experiment" | "cell" | "onTrial">) {
  return (
    <dl className={style["figures"]}>
      {measures.map((measure) => {
        const value = measured(trial, measure);
        const base = measured(before, measure);
        const delta = value === undefined || base === undefined || isBase ? null : value - base;
        return value === undefined ? null : (
          <div key={measure.name}>
            <dt>{measure.title}</dt>
            <dd>
              {valueText(measure, value)}
              {delta !== null && Math.abs(delta) > 1e-9 && (
                <>
                  {" "}
                  <Delta value={delta} text={deltaText(measure, delta)} tone={measure.unit === "score" ? toneOf(measure, delta) : "none"} />
                </>
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

function Trials({ cell, trial, experiment, onTrial }: Pick<ColumnProps, "cell" | "trial" | "experiment" | "onTrial">) {
  const trials = cell?.trials ?? [];
  if (trials.length < 2) return null;
  return (
    <div className={style["trials"]} role="group" aria-label={`Trials of ${experiment.name}`}>
      {trials.map((one, index) => (
        <button
          key={one.rootSpanId}
          type="button"
          aria-pressed={one === trial}
          aria-label={`Trial ${index + 1}`}
          className={classes(style["trial"], one === trial && style["on"])}
          onClick={() => onTrial(index)}
        >
          {index + 1}
        </button>
      ))}
    </div>
  );
}

/** The paths at which two values of JSON differ. */
function Paths({ before, after }: { readonly before: unknown; readonly after: unknown }) {
  const changes = useMemo(() => {
    const [a, b] = [structureOf(before), structureOf(after)];
    return a === null || b === null ? [] : diffPaths(a, b);
  }, [before, after]);
  if (changes.length === 0) return null;
  return (
    <section className={style["paths"]} aria-label="Changed paths">
      <h3>{changes.length === 1 ? "1 path differs" : `${changes.length} paths differ`}</h3>
      <dl>
        {changes.map((change) => (
          <div key={change.path}>
            <dt>{change.path}</dt>
            <dd>
              {change.kind === "added" && <ins className={style["added"]}>{lineOf(change.after)}</ins>}
              {change.kind === "removed" && <del className={style["removed"]}>{lineOf(change.before)}</del>}
              {change.kind === "changed" && <DiffText parts={diffOf(lineOf(change.before), lineOf(change.after))} />}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Output({ trial, before }: { readonly trial: Trial; readonly before: Trial | undefined }) {
  const text = blockOf(trial.output);
  const old = before === undefined || before.error !== null ? null : blockOf(before.output);
  const parts = useMemo(() => (old === null ? null : diffOf(old, text)), [old, text]);
  if (trial.error !== null) return <pre className={classes(style["block"], style["error"])}>{blockOf(trial.error)}</pre>;
  if (text === "") return <p className={style["faint"]}>no output</p>;
  return (
    <>
      <pre className={style["block"]}>{parts === null ? text : <DiffText parts={parts} />}</pre>
      {before !== undefined && <Paths before={before.output} after={trial.output} />}
    </>
  );
}

export function Column(props: ColumnProps) {
  const { experiment, isBase, trial, before } = props;
  return (
    <section className={style["column"]} aria-label={experiment.name}>
      <header className={style["columnHead"]}>
        <h3 title={experiment.name}>{experiment.name}</h3>
        {isBase && <span className={style["faint"]}>base</span>}
        <Trials {...props} />
        {trial !== undefined && <Copy text={blockOf(trial.error ?? trial.output)} what="the output" />}
      </header>
      {trial === undefined ? (
        <p className={style["absent"]}>{isBase ? "The base has no row of this key." : "This experiment has no row of this key."}</p>
      ) : (
        <>
          <Figures {...props} />
          <Output trial={trial} before={isBase ? undefined : before} />
        </>
      )}
    </section>
  );
}
