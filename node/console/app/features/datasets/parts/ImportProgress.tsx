// The step of an import that shows how far it is, and the lines that were refused.
import { useEffect } from "react";
import { Button } from "../../../design/Button";
import { DialogActions } from "../../../design/Dialog";
import { exactCount } from "../../../lib/numbers";
import { announce } from "../../../lib/store";
import type { Progress, Refused } from "../importing";
import type { Import } from "../useImport";
import style from "./Import.module.css";
import { rowWords } from "./SelectionBar";

const SHOWN = 200;

/** The refused lines as CSV. Messages are quoted, and start with a word, so that no spreadsheet computes them. */
const refusedFile = (refused: readonly Refused[]): string =>
  ["line,message", ...refused.map(({ line, message }) => `${line},"${message.replaceAll('"', '""')}"`)].join("\r\n");

function downloadText(text: string, name: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function Refusals({ refused }: { readonly refused: readonly Refused[] }) {
  if (refused.length === 0) return null;
  return (
    <section aria-labelledby="refused-lines">
      <div className={style["refusedHead"]}>
        <h3 id="refused-lines">
          {refused.length === 1 ? "1 line was refused" : `${exactCount(refused.length)} lines were refused`}
        </h3>
        <Button icon="download" onClick={() => downloadText(refusedFile(refused), "refused-lines.csv")}>
          Download
        </Button>
      </div>
      <ul className={style["refused"]} tabIndex={0} aria-label="Refused lines">
        {refused.slice(0, SHOWN).map(({ line, message }, index) => (
          <li key={index}>
            <span className={style["line"]}>Line {exactCount(line)}</span> {message}
          </li>
        ))}
        {refused.length > SHOWN && <li>The file has them all.</li>}
      </ul>
    </section>
  );
}

/** What was done, in words. */
function outcome({ written, replaced, skipped }: Progress): string {
  const parts = [
    `${rowWords(written)} written`,
    replaced === 0 ? "" : `${exactCount(replaced)} replaced`,
    skipped === 0 ? "" : `${exactCount(skipped)} skipped`,
  ];
  return parts.filter((part) => part !== "").join(", ");
}

function Actions({ state, onClose }: { readonly state: Import; readonly onClose: () => void }) {
  if (state.phase === "done") {
    return (
      <Button look="primary" onClick={onClose}>
        Close
      </Button>
    );
  }
  return (
    <>
      <Button onClick={state.cancel}>Cancel</Button>
      <Button look="primary" onClick={() => state.hold(!state.isPaused)}>
        {state.isPaused ? "Resume" : "Pause"}
      </Button>
    </>
  );
}

export function ImportProgress({ state, onClose }: { readonly state: Import; readonly onClose: () => void }) {
  const { progress, phase, problem, isPaused, isCancelled } = state;
  const share = progress.size === 0 ? 0 : progress.done / progress.size;
  const words = outcome(progress);
  const isDone = phase === "done";
  useEffect(() => {
    if (isDone) announce(`The import has ended. ${words}`);
  }, [isDone]);
  const title = isDone
    ? isCancelled
      ? "Cancelled. What was written stays."
      : problem === null
        ? "Done."
        : "The import failed."
    : isPaused
      ? "Paused"
      : `Importing, ${Math.round(share * 100)} %`;
  return (
    <>
      <p className={style["state"]}>{title}</p>
      <progress className={style["progress"]} value={isDone && !isCancelled ? 1 : share} max={1} aria-label="Progress of the import" />
      <p>{words}</p>
      {problem !== null && (
        <p className={style["fault"]} role="alert">
          {problem.title}. {problem.text} {!isDone && "Resume tries the same rows again; none is written twice."}
        </p>
      )}
      <Refusals refused={progress.refused} />
      <DialogActions>
        <Actions state={state} onClose={onClose} />
      </DialogActions>
    </>
  );
}
