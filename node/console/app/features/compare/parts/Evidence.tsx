// How certain a change is: its interval and verdict, what would settle it, and the inputs whose trials disagree.
import { useRef } from "react";
import type { Change } from "../../../api/comparison";
import type { MeasureStatistics } from "../../../api/statistics";
import { Chip } from "../../../design/Chip";
import { Popover } from "../../../design/Popover";
import { useOpener } from "../../../design/PopoverLogic";
import { exactCount } from "../../../lib/numbers";
import { changeTitle, type Judgement } from "../judgements";
import { intervalText, valueText, type Measure } from "../measures";
import { structureOf } from "../paths";
import { lineOf } from "../values";
import style from "./Evidence.module.css";

interface DisagreementsProps {
  readonly measure: Measure;
  /** The experiment, where several have statistics. */
  readonly experiment?: string | undefined;
  readonly statistics: MeasureStatistics;
  readonly onOpen: (key: string) => void;
}

/** The number of inputs whose trials disagree, which opens a list of them. */
function Disagreements({ measure, experiment, statistics, onOpen }: DisagreementsProps) {
  const { disagreeing, disagreements } = statistics;
  const button = useRef<HTMLButtonElement>(null);
  const panel = useOpener();
  const words = `trials of ${exactCount(disagreeing)} ${disagreeing === 1 ? "input" : "inputs"} disagree`;
  const title = `${measure.title}${experiment === undefined ? "" : ` of ${experiment}`}: ${words}`;
  const further = disagreeing - disagreements.length;
  return (
    <>
      <button {...panel.opener} ref={button} type="button" className={style["more"]} aria-label={title}>
        {words}
      </button>
      {panel.isOpen && (
        <Popover label={title} anchor={button} onClose={panel.close}>
          <ul className={style["inputs"]}>
            {disagreements.map(({ key, trials, low, high }) => (
              <li key={key}>
                <button
                  type="button"
                  className={style["input"]}
                  title="Open the row of this input"
                  onClick={() => {
                    panel.close();
                    onOpen(key);
                  }}
                >
                  {lineOf(structureOf(key) ?? key)}
                </button>
                <span>
                  {valueText(measure, low)} to {valueText(measure, high)} in {exactCount(trials)} trials
                </span>
              </li>
            ))}
          </ul>
          {further > 0 && <p className={style["hint"]}>and {exactCount(further)} more</p>}
        </Popover>
      )}
    </>
  );
}

interface EvidenceProps extends Omit<DisagreementsProps, "statistics"> {
  readonly change: Change | null;
  readonly judgement: Judgement;
}

export function Evidence({ change, judgement, ...rest }: EvidenceProps) {
  const { interval, tone, word, hint, statistics } = judgement;
  const incomplete = change === null ? 0 : (statistics?.incomplete ?? 0);
  return (
    <>
      {change !== null && (
        <p className={style["line"]} title={changeTitle(rest.measure, change, judgement)}>
          {interval !== null && (
            <span>
              95 %: {intervalText(rest.measure, interval)}
            </span>
          )}
          {word !== "" && <Chip tone={tone}>{word}</Chip>}
        </p>
      )}
      {hint !== "" && <p className={style["hint"]}>{hint}</p>}
      {incomplete > 0 && (
        <p className={style["hint"]}>
          {exactCount(incomplete)} {incomplete === 1 ? "input has" : "inputs have"} it in one experiment only
        </p>
      )}
      {statistics !== null && statistics.disagreeing > 0 && <Disagreements {...rest} statistics={statistics} />}
    </>
  );
}
