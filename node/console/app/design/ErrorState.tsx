// What is shown where a read failed: the server's words, its code, the request, and the way out.
import { useEffect, useState } from "react";
import type { Problem } from "../lib/problem";
import { Button } from "./Button";
import { Copy } from "./Copy";
import style from "./ErrorState.module.css";
import { Icon } from "./Icon";

/** The seconds until a moment, counted down to 0. */
function useSecondsUntil(moment: number | null): number {
  const [present, setPresent] = useState(() => Date.now());
  const seconds = moment === null ? 0 : Math.max(0, Math.ceil((moment - present) / 1000));
  const isCounting = seconds > 0;
  useEffect(() => {
    if (!isCounting) return undefined;
    const timer = window.setInterval(() => setPresent(Date.now()), 250);
    return () => window.clearInterval(timer);
  }, [isCounting]);
  return seconds;
}

interface ErrorStateProps {
  readonly problem: Problem;
  readonly onRetry: () => void;
  readonly onSignIn: () => void;
}

export function ErrorState({ problem, onRetry, onSignIn }: ErrorStateProps) {
  const seconds = useSecondsUntil(problem.retryAt);
  return (
    <div className={style["error"]} role="alert">
      <h2 className={style["title"]}>
        <Icon name="warning" />
        {problem.title}
      </h2>
      <p className={style["text"]}>{problem.text}</p>
      {(problem.code ?? problem.requestId) !== null && (
        <p className={style["details"]}>
          {problem.code !== null && <code>{problem.code}</code>}
          {problem.requestId !== null && (
            <span className={style["request"]}>
              request <code>{problem.requestId}</code>
              <Copy text={problem.requestId} what="the request id" />
            </span>
          )}
        </p>
      )}
      <div className={style["action"]}>
        {problem.wayOut === "retry" && (
          <Button onClick={onRetry} disabled={seconds > 0}>
            {seconds > 0 ? `Try again in ${seconds} s` : "Try again"}
          </Button>
        )}
        {problem.wayOut === "sign-in" && (
          <Button look="primary" onClick={onSignIn}>
            Sign in
          </Button>
        )}
      </div>
    </div>
  );
}
