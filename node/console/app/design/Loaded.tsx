// Shows a read in each of its states: being read, taking long, stopped, failed, and there.
import { useEffect, useState, type ReactNode } from "react";
import type { Reading } from "../lib/problem";
import { Button } from "./Button";
import { ErrorState } from "./ErrorState";
import style from "./Loaded.module.css";

const SKELETON_MS = 120;
const LONG_MS = 3000;

/** How long a read has been going on; 0 while nothing is being read. */
function useElapsed(isReading: boolean): number {
  const [elapsed, setElapsed] = useState(0);
  useEffect(() => {
    setElapsed(0);
    if (!isReading) return undefined;
    const started = performance.now();
    const measure = (): void => setElapsed(performance.now() - started);
    const first = window.setTimeout(measure, SKELETON_MS);
    const timer = window.setInterval(measure, 500);
    return () => {
      window.clearTimeout(first);
      window.clearInterval(timer);
    };
  }, [isReading]);
  return elapsed;
}

interface LoadedProps<Data> {
  readonly reading: Reading<Data>;
  readonly skeleton: ReactNode;
  readonly onSignIn: () => void;
  readonly children: (data: Data) => ReactNode;
}

export function Loaded<Data>({ reading, skeleton, onSignIn, children }: LoadedProps<Data>) {
  const { data, problem, isReading, again, stop } = reading;
  const elapsed = useElapsed(isReading);
  const isLong = isReading && elapsed >= LONG_MS;
  const long = isLong && (
    <p className={style["long"]}>
      Still reading, {(elapsed / 1000).toFixed(1)} s
      <Button onClick={stop}>Stop</Button>
    </p>
  );
  const failure = problem !== null && !isReading && (
    <ErrorState problem={problem} onRetry={again} onSignIn={onSignIn} />
  );
  if (data !== undefined) {
    return (
      <>
        {failure}
        {long}
        <div className={isLong ? style["dimmed"] : undefined}>{children(data)}</div>
      </>
    );
  }
  if (failure !== false) return failure;
  if (!isReading) {
    return (
      <p className={style["long"]}>
        The read was stopped.
        <Button onClick={again}>Read again</Button>
      </p>
    );
  }
  return (
    <div aria-busy="true">
      {long}
      {elapsed >= SKELETON_MS && skeleton}
    </div>
  );
}
