// What a card shows: its lines, its values or its data as a table, and what stands there while it has none.
import type { QueryKey, UseQueryResult } from "@tanstack/react-query";
import { useEffect, useMemo, useState, type ReactNode } from "react";
import { isAbort, problemOf } from "../../../lib/errors";
import { cache } from "../../../api/queries";
import { faultOf } from "../../../api/query";
import { Button } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { lazily, readyAll } from "../../../design/Lazily";
import type { ChartLine } from "../../../design/LineChart";
import { Skeleton } from "../../../design/Skeleton";
import type { Unit } from "../cards";
import { shortUnitText, unitText, type Drawn } from "../series";
import style from "./Card.module.css";
import { DataTable } from "./DataTable";

const LineChart = lazily(async () => (await import("../../../design/LineChart")).LineChart);

// Charts are what the screen is for: their code is loaded while the cards are still being read.
readyAll([LineChart]);

const WAIT_MS = 120;
const LONG_MS = 3000;
const BARS = [[30], [22], [14]];

/** Says that a read goes on: nothing at first, then a line, and after three seconds for how long. */
function Waiting({ isList, onStop }: { readonly isList: boolean; readonly onStop: () => void }) {
  const [elapsed, setElapsed] = useState(0);
  useEffect(() => {
    const started = performance.now();
    const measure = (): void => setElapsed(performance.now() - started);
    const first = window.setTimeout(measure, WAIT_MS);
    const timer = window.setInterval(measure, 500);
    return () => {
      window.clearTimeout(first);
      window.clearInterval(timer);
    };
  }, []);
  if (elapsed < LONG_MS) {
    if (isList) return <div className={style["bars"]} aria-busy="true">{elapsed >= WAIT_MS && <Skeleton lines={BARS} />}</div>;
    return <div className={classes(style["waiting"], elapsed >= WAIT_MS && style["line"])} aria-busy="true" />;
  }
  return (
    <div className={style["state"]} aria-busy="true">
      <span>Still reading, {(elapsed / 1000).toFixed(1)} s</span>
      <Button onClick={onStop}>Stop</Button>
    </div>
  );
}

function Failure({ error, onAgain }: { readonly error: unknown; readonly onAgain: () => void }) {
  const fault = faultOf(error);
  if (fault?.part.startsWith("filter") === true) {
    return <p className={style["nothing"]}>There is nothing to draw, because the filter or the group cannot be understood.</p>;
  }
  const problem = problemOf(error, Date.now());
  return (
    <div className={style["state"]} role="alert">
      <span className={style["fault"]}>{fault === null ? problem.title : "The server cannot understand an expression"}</span>
      <span className={style["detail"]}>{fault === null ? problem.text : fault.message}</span>
      {problem.requestId !== null && <span className={style["detail"]}>Request {problem.requestId}</span>}
      <Button onClick={onAgain}>Try again</Button>
    </div>
  );
}

interface ReadProps<Data> {
  readonly query: UseQueryResult<Data>;
  /** The key of the query, by which it is stopped. */
  readonly queryKey: QueryKey;
  /** Whether the query is asked at all: not while the card is off the screen. */
  readonly isAsked: boolean;
  /** Whether the card shows a list, not lines. */
  readonly isList?: boolean;
  /** What failed before the card's own query could be asked; null if nothing did. */
  readonly before: { readonly error: unknown; readonly again: () => void } | null;
  readonly children: (data: Data) => ReactNode;
}

/** The answer of a card's query in each of its states. An older answer stays, dimmed, until the new one is there. */
export function Read<Data>({ query, queryKey, isAsked, isList = false, before, children }: ReadProps<Data>) {
  const { data, error, isFetching, isPlaceholderData, fetchStatus } = query;
  if (before !== null) return <Failure error={before.error} onAgain={before.again} />;
  if (error !== null && !isAbort(error) && !isFetching) return <Failure error={error} onAgain={() => void query.refetch()} />;
  if (data !== undefined) {
    return (
      <div className={classes(style["shown"], isPlaceholderData && style["old"])} aria-busy={isPlaceholderData}>
        {children(data)}
      </div>
    );
  }
  if (fetchStatus === "idle" && isAsked) {
    return (
      <div className={style["state"]}>
        <span>The read was stopped.</span>
        <Button onClick={() => void query.refetch()}>Read again</Button>
      </div>
    );
  }
  return <Waiting isList={isList} onStop={() => void cache.cancelQueries({ queryKey, exact: true })} />;
}

interface LinesProps {
  readonly title: string;
  readonly drawn: Drawn;
  readonly lines: readonly ChartLine[];
  readonly unit: Unit;
  readonly isTable: boolean;
  readonly summary: string;
  readonly onPoint: (x: number, line: string | null) => void;
  readonly onRange: (from: number, to: number) => void;
}

export function Lines({ title, drawn, lines, unit, isTable, summary, onPoint, onRange }: LinesProps) {
  const { xs } = drawn;
  const format = useMemo(() => (value: number | null | undefined) => unitText(value, unit), [unit]);
  const tick = useMemo(() => (value: number) => shortUnitText(value, unit), [unit]);
  if (isTable) return <DataTable label={title} {...{ xs, lines, unit }} />;
  return (
    <>
      <p className="only-spoken">{summary}</p>
      <LineChart label={title} isTime {...{ xs, lines, format, tick, onPoint, onRange }} />
    </>
  );
}
