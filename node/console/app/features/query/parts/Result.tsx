// The result of the shown query: what it has to say of itself, and its rows as a table, a chart, JSON, or the plan.
import type { Signal } from "@preact/signals";
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { Button } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { Empty } from "../../../design/Empty";
import { ErrorState } from "../../../design/ErrorState";
import { withKeys } from "../../../design/Kbd";
import { Skeleton } from "../../../design/Skeleton";
import { duration } from "../../../lib/numbers";
import { announce } from "../../../lib/store";
import type { Ran, Run } from "../runner";
import { saidOf } from "../said";
import { RESULT_TABS, type ResultTab } from "../url";
import { ChartLater, loadChart } from "./ChartLater";
import { ResultJson } from "./ResultJson";
import { ResultTable } from "./ResultTable";
import style from "./Result.module.css";

const TITLES: Readonly<Record<ResultTab, string>> = { table: "Table", chart: "Chart", json: "JSON", plan: "Plan" };
const LONG_MS = 3000;
const SKELETON_MS = 120;
const BARS = Array.from({ length: 8 }, () => [22, 14, 18, 10]);

interface TabsProps {
  readonly tab: ResultTab;
  readonly onTab: (tab: ResultTab) => void;
}

function Tabs({ tab, onTab }: TabsProps) {
  const list = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const index = (RESULT_TABS.indexOf(tab) + by + RESULT_TABS.length) % RESULT_TABS.length;
    const next = RESULT_TABS[index];
    if (by === 0 || next === undefined) return;
    event.preventDefault();
    onTab(next);
    list.current?.querySelectorAll("button")[index]?.focus();
  };
  return (
    <div ref={list} role="tablist" aria-label="Show the result as" className={style["tabs"]} onKeyDown={onKeyDown}>
      {RESULT_TABS.map((one) => (
        <button
          key={one}
          type="button"
          role="tab"
          id={`result-tab-${one}`}
          aria-selected={one === tab}
          aria-controls="result-panel"
          tabIndex={one === tab ? 0 : -1}
          className={classes(style["tab"], one === tab && style["chosen"])}
          onClick={() => onTab(one)}
        >
          {TITLES[one]}
        </button>
      ))}
    </div>
  );
}

/** How long the shown run has been going on, in milliseconds. */
function useElapsed(run: Run): number {
  const [elapsed, setElapsed] = useState(0);
  const isRunning = run.status === "running";
  useEffect(() => {
    setElapsed(0);
    if (!isRunning) return undefined;
    const timer = window.setInterval(() => setElapsed(performance.now() - run.started), 200);
    return () => window.clearInterval(timer);
  }, [isRunning, run.started]);
  return elapsed;
}

interface SaidProps {
  readonly run: Run;
  readonly elapsed: number;
  readonly onMore: () => void;
}

function Said({ run, elapsed, onMore }: SaidProps) {
  const { ran } = run;
  const said = ran === null || run.request === null ? null : saidOf(ran, run.request.query);
  const isRunning = run.status === "running";
  useEffect(() => {
    if (run.status === "done" && said !== null) announce(said.rows);
    if (run.status === "failed") announce("The query failed.");
  }, [run.status, run.started]);
  return (
    <div className={style["said"]}>
      {isRunning && (
        <span>
          {elapsed >= LONG_MS ? "Still reading, " : "Reading, "}
          {duration(elapsed)}
        </span>
      )}
      {run.status === "stopped" && <span className={style["warn"]}>Stopped.</span>}
      {said !== null && (
        <>
          <span>{said.rows}</span>
          {said.limit !== null && <span className={style["warn"]}>{said.limit}</span>}
          <span title={said.title}>{said.cost}</span>
        </>
      )}
      {!isRunning && said?.hasMore === true && (
        <Button look="quiet" icon="down" title={withKeys("Next page", "m")} onClick={onMore}>
          Next page
        </Button>
      )}
    </div>
  );
}

interface ResultProps {
  readonly run: Signal<Run>;
  readonly tab: ResultTab;
  readonly chart: string;
  readonly onTab: (tab: ResultTab) => void;
  readonly onChart: (chart: string) => void;
  readonly onMore: () => void;
  readonly onRun: () => void;
  readonly onSignIn: () => void;
}

function bodyOf(ran: Ran, query: string, { tab, chart, onChart }: ResultProps): ReactNode {
  switch (tab) {
    case "table":
      if (ran.rows.length === 0) return <Empty>The query found no rows.</Empty>;
      return <ResultTable ran={ran} query={query} />;
    case "chart":
      return <ChartLater ran={ran} chart={chart} onChart={onChart} />;
    case "json":
      return <ResultJson ran={ran} />;
    case "plan":
      if (ran.result.plan === null) return <Empty>The server sent no plan with this result.</Empty>;
      return (
        <pre className={style["plan"]} tabIndex={0} role="region" aria-label="Plan of the query">
          {ran.result.plan}
        </pre>
      );
  }
}

export function Result(props: ResultProps) {
  const { tab, onTab, onMore, onRun, onSignIn } = props;
  const run = props.run.value;
  const elapsed = useElapsed(run);
  useEffect(() => {
    if (tab === "chart") loadChart().catch(() => undefined);
  }, [tab]);
  const isOld = run.status === "running" && run.request?.cursor === null;
  const problem = run.problem;
  return (
    <section className={style["result"]} aria-label="Result" aria-busy={run.status === "running"}>
      <div className={style["bar"]}>
        <Tabs tab={tab} onTab={onTab} />
        <Said run={run} elapsed={elapsed} onMore={onMore} />
      </div>
      <div
        id="result-panel"
        role="tabpanel"
        aria-labelledby={`result-tab-${tab}`}
        className={classes(style["body"], isOld && style["old"])}
      >
        {problem !== null && run.fault === null && (
          <div className={style["problem"]}>
            <ErrorState problem={problem} onRetry={onRun} onSignIn={onSignIn} />
          </div>
        )}
        {problem !== null && run.fault !== null && (
          <Empty>The query did not run. The remark above says why.</Empty>
        )}
        {run.ran === null && run.status === "running" && elapsed >= SKELETON_MS && (
          <div className={style["skeleton"]}>
            <Skeleton lines={BARS} />
          </div>
        )}
        {run.ran === null && run.status === "stopped" && (
          <Empty action={<Button onClick={onRun}>Run again</Button>}>The query was stopped.</Empty>
        )}
        {problem === null && run.ran !== null && bodyOf(run.ran, run.request?.query ?? "", props)}
      </div>
    </section>
  );
}
