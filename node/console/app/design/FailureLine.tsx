// A failure in one line, where a card would not fit: what failed, all that the server said on request, and another try.
import { useRef } from "react";
import type { Problem } from "../lib/problem";
import style from "./FailureLine.module.css";
import { Icon } from "./Icon";
import { lazily } from "./Lazily";
import { useOpener } from "./PopoverLogic";

const Popover = lazily(async () => (await import("./Popover")).Popover);

interface FailureLineProps {
  /** What failed, in a few words. */
  readonly words: string;
  readonly problem: Problem;
  /** What may help, in a sentence. */
  readonly hint?: string | undefined;
  readonly onRetry: () => void;
}

/** All that is known of the failure. */
function Whole({ problem: { title, text, code, requestId }, hint }: Pick<FailureLineProps, "problem" | "hint">) {
  const details = [code, requestId === null ? null : `request ${requestId}`].filter((one) => one !== null);
  return (
    <div className={style["whole"]} data-first tabIndex={-1}>
      <p className={style["title"]}>{title}</p>
      <p className={style["said"]}>{text}</p>
      {hint !== undefined && <p>{hint}</p>}
      {details.length > 0 && <p className={style["details"]}>{details.join(", ")}</p>}
    </div>
  );
}

export function FailureLine({ words, problem, hint, onRetry }: FailureLineProps) {
  const button = useRef<HTMLButtonElement>(null);
  const panel = useOpener();
  return (
    <>
      <div className={style["line"]} role="alert">
        <button {...panel.opener} ref={button} type="button" className={style["words"]} title={problem.text}>
          <Icon name="warning" />
          <span className={style["text"]}>{words}</span>
        </button>
        {problem.wayOut !== "none" && (
          <button type="button" className={style["again"]} onClick={onRetry}>
            Try again
          </button>
        )}
      </div>
      {panel.isOpen && (
        <Popover label="What failed" anchor={button} onClose={panel.close}>
          <Whole problem={problem} hint={hint} />
        </Popover>
      )}
    </>
  );
}
