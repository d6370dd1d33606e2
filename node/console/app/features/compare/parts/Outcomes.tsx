// What the trials of a cell came to, in one line.
import type { Cell } from "../../../api/comparison";
import { diffOf } from "../../../design/DiffWords";
import { NOTHING } from "../../../lib/numbers";
import { outcomeOf, outcomesOf } from "../values";
import { condensed } from "../words";
import { DiffText } from "./DiffText";
import style from "./cells.module.css";

interface OutcomesProps {
  readonly cell: Cell | undefined;
  /** The cell of the base, if differences are shown. */
  readonly base: Cell | undefined;
  /** The number of the one trial that is shown; null for all. */
  readonly trial: number | null;
}

const Missing = () => <span className={style["absent"]}>no row</span>;

/** What the base came to, if it says one thing only. */
function baseText(base: Cell | undefined): string | null {
  if (base === undefined) return null;
  const [first, ...others] = outcomesOf(base);
  return first === undefined || first.isError || others.length > 0 ? null : first.text;
}

interface OutcomeProps {
  readonly text: string;
  readonly isError: boolean;
  readonly before: string | null;
}

function Shown({ text, isError, before }: OutcomeProps) {
  if (isError) return <span className={style["error"]}>{text}</span>;
  if (text === NOTHING) return <span className={style["faint"]}>{NOTHING}</span>;
  if (before === null || before === text) return <span>{text}</span>;
  return <DiffText parts={condensed(diffOf(before, text))} />;
}

export function Outcomes({ cell, base, trial }: OutcomesProps) {
  if (cell === undefined || cell.trials.length === 0) return trial === null ? <Missing /> : null;
  const before = baseText(base);
  if (trial !== null) {
    const one = cell.trials[trial];
    if (one === undefined) return null;
    return <Shown text={outcomeOf(one)} isError={one.error !== null} before={before} />;
  }
  const outcomes = outcomesOf(cell);
  if (cell.trials.length === 1 && outcomes[0] !== undefined) return <Shown {...outcomes[0]} before={before} />;
  return (
    <>
      <span className={style["trials"]} title={`${cell.trials.length} trials. The key l shows each.`}>
        {cell.trials.length}
      </span>
      {outcomes.map((outcome, index) => (
        <span key={index}>
          {index > 0 && <span className={style["separator"]}> · </span>}
          {outcome.count > 1 && outcomes.length > 1 && <span className={style["faint"]}>{outcome.count} × </span>}
          <Shown {...outcome} before={before} />
        </span>
      ))}
    </>
  );
}
