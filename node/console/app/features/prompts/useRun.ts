// A test run of a prompt: its answer while it arrives, how long it took, and what it used.
import { useEffect, useRef, useState } from "react";
import { isAbort, problemOf } from "../../lib/errors";
import { gather, invoke, NOTHING_GATHERED, type Gathered, type Invocation } from "../../api/invoke";
import { readRunUse, type RunUse } from "../../api/prompts";
import type { Problem } from "../../lib/problem";

export interface Run {
  readonly gathered: Gathered;
  readonly isRunning: boolean;
  readonly isStopped: boolean;
  /** Milliseconds until the first piece of the answer, and until its end; null before. */
  readonly first: number | null;
  readonly took: number | null;
  readonly failure: Problem | null;
  /** What the logs tell of the run; null if it is not kept there, or not yet. */
  readonly use: RunUse | null;
}

const STARTED: Run = { gathered: NOTHING_GATHERED, isRunning: true, isStopped: false, first: null, took: null, failure: null, use: null };

const TRIES = 6;
const BETWEEN_MS = 400;

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

/** Reads what a run used as soon as the logs have it. */
async function usedBy(organization: string, projectId: string, rowId: string, signal: AbortSignal): Promise<RunUse | null> {
  for (let attempt = 0; attempt < TRIES && !signal.aborted; attempt += 1) {
    const use = await readRunUse(organization, projectId, rowId, signal);
    if (use !== null && use.tokens !== null) return use;
    if (attempt === TRIES - 1) return use;
    await pause(BETWEEN_MS);
  }
  return null;
}

export function useRun(organization: string) {
  const [run, setRun] = useState<Run | null>(null);
  const stopper = useRef<AbortController | null>(null);
  useEffect(() => () => stopper.current?.abort(), []);
  const start = async (invocation: Invocation): Promise<void> => {
    stopper.current?.abort();
    const mine = new AbortController();
    stopper.current = mine;
    const began = performance.now();
    let now = STARTED;
    // a run that was replaced by another one says nothing any more
    const tell = (change: Partial<Run>): void => {
      now = { ...now, ...change };
      if (stopper.current === mine) setRun(now);
    };
    tell({});
    try {
      for await (const event of invoke(organization, invocation, mine.signal)) {
        const isPiece = event.kind !== "head" && event.kind !== "done";
        tell({ gathered: gather(now.gathered, event), ...(isPiece && now.first === null ? { first: performance.now() - began } : {}) });
      }
    } catch (error) {
      if (mine.signal.aborted || isAbort(error)) return tell({ isRunning: false, isStopped: true, took: performance.now() - began });
      return tell({ isRunning: false, failure: problemOf(error, Date.now()), took: performance.now() - began });
    }
    tell({ isRunning: false, took: performance.now() - began });
    const row = now.gathered.head?.spanId ?? null;
    if (row === null) return;
    const use = await usedBy(organization, invocation.projectId, row, mine.signal).catch(() => null);
    tell({ use });
  };
  const stop = (): void => stopper.current?.abort();
  return { run, start, stop };
}
