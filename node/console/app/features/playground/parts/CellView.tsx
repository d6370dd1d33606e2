// A cell: its answer as it arrives, its scores, and what it took.
import { memo } from "react";
import type { ScoreGiven } from "../../../api/playgroundRuns";
import { IconButton } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { diffOf } from "../../../design/DiffWords";
import { Icon } from "../../../design/Icon";
import { useLinks } from "../../../lib/links";
import { duration, money, score } from "../../../lib/numbers";
import { hasAnswer, isUnderWay, textOf, timeOf, type Cell } from "../cells";
import type { Runs } from "../useRuns";
import style from "./CellView.module.css";

/** Longer texts are cut in a cell; all of them are in the panel. */
const SHOWN_MAX = 1200;

const NAMES: Readonly<Record<Cell["state"], string>> = {
  waiting: "Waiting",
  running: "Running",
  scoring: "Scoring",
  done: "Done",
  failed: "Failed",
  stopped: "Stopped",
};

export const stateName = (cell: Cell | null): string => (cell === null ? "Not run" : NAMES[cell.state]);

export function Scores({ scores }: { readonly scores: readonly ScoreGiven[] }) {
  return scores.map(({ name, value, error, reason }) => (
    <span key={name} className={classes(style["score"], error !== null && style["bad"])} title={error ?? (reason === "" ? undefined : reason)}>
      {name} {error === null ? score(value) : "failed"}
    </span>
  ));
}

export function Failure({ cell, organization }: { readonly cell: Cell; readonly organization: string }) {
  const links = useLinks();
  const { failure } = cell;
  if (failure === null) return null;
  return (
    <p className={style["failure"]}>
      {failure.message}
      {failure.isWithoutSecret && (
        <>
          {" "}
          <a href={links.page("settings", organization, "", ["secrets"])}>Open the AI secrets</a>
        </>
      )}
    </p>
  );
}

/** A text, with the words that differ from those of the first column. */
export function Text({ text, before }: { readonly text: string; readonly before: string | null }) {
  if (before === null) return <>{text}</>;
  return diffOf(before, text).map(({ kind, text: part }, index) => {
    if (kind === "added") return <ins key={index} className={style["added"]}>{part}</ins>;
    if (kind === "removed") return <del key={index} className={style["removed"]}>{part}</del>;
    return <span key={index}>{part}</span>;
  });
}

/** The text that a cell is compared with; null if there is none. */
export const comparedText = (base: Cell | null): string | null => (base !== null && hasAnswer(base) ? textOf(base) : null);

const cut = (text: string): string => (text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text);

function Answer({ cell, base, organization }: { readonly cell: Cell; readonly base: Cell | null; readonly organization: string }) {
  if (cell.failure !== null) return <Failure cell={cell} organization={organization} />;
  const before = hasAnswer(cell) ? comparedText(base) : null;
  const text = cut(textOf(cell));
  const running = cell.answer.tools.filter(({ state }) => state === "running").map(({ name }) => name);
  if (running.length > 0) return <p className={style["faint"]}>Calls {running.join(", ")}…</p>;
  if (text === "" && cell.answer.reasoning !== "") return <p className={style["faint"]}>{cut(cell.answer.reasoning)}</p>;
  return (
    <p className={style["text"]}>
      <Text text={text} before={before === null ? null : cut(before)} />
    </p>
  );
}

function Foot({ cell, isOld }: { readonly cell: Cell; readonly isOld: boolean }) {
  const time = timeOf(cell);
  const isEnded = cell.state === "done" || cell.state === "failed";
  return (
    <div className={style["foot"]}>
      {cell.scores.length > 0 && (
        <p className={style["scores"]}>
          <Scores scores={cell.scores} />
        </p>
      )}
      <p className={style["facts"]}>
        {!isEnded && <span className={style["state"]}>{stateName(cell)}</span>}
        {isOld && isEnded && (
          <span className={style["old"]} title="The prompt, the model or the row was changed after this cell ran.">
            Changed since
          </span>
        )}
        {cell.answer.head?.isCached === true && <span title="The answer came from the cache.">cached</span>}
        <span className={style["took"]}>
          {time !== null && cell.state !== "running" && duration(time)}
          {cell.figures?.cost != null && ` · ${money(cell.figures.cost)}`}
        </span>
      </p>
    </div>
  );
}

interface CellViewProps {
  readonly runs: Runs;
  readonly row: string;
  readonly variant: string;
  /** The column with which the cell is compared; empty for none. */
  readonly base: string;
  /** What the cell would run now. */
  readonly of: string;
  readonly organization: string;
}

export const CellView = memo(function CellView({ runs, row, variant, base, of, organization }: CellViewProps) {
  const cell = runs.store.at({ row, variant }).value;
  const compared = base === "" ? null : runs.store.at({ row, variant: base }).value;
  const isOpen = isUnderWay(cell);
  return (
    <>
      <span className="only-spoken">{stateName(cell)}</span>
      {cell === null ? (
        <p className={style["faint"]}>Not run</p>
      ) : (
        <>
          <div className={style["answer"]}>
            <Answer cell={cell} base={compared} organization={organization} />
          </div>
          <Foot cell={cell} isOld={cell.of !== of} />
        </>
      )}
      {cell?.state === "failed" && (
        <span className={style["mark"]}>
          <Icon name="warning" />
        </span>
      )}
      <span className={style["tool"]}>
        <IconButton
          icon={isOpen ? "stop" : "play"}
          label={isOpen ? "Stop this cell" : "Run this cell"}
          tabIndex={-1}
          onClick={(event) => {
            event.stopPropagation();
            if (isOpen) runs.stop({ row, variant });
            else runs.start([{ row, variant }]);
          }}
        />
      </span>
    </>
  );
});
