// Runs the queries of the tabs, and keeps the result of each tab while the screen is open.
import { signal, type Signal } from "@preact/signals";
import { isAbort, problemOf } from "../../lib/errors";
import type { Fields } from "../../api/narrow";
import { faultOf } from "../../api/query";
import type { Problem } from "../../lib/problem";
import { run, type Fault, type Result, type RunRequest } from "./queries";

/** The result of a tab, of all pages that were read so far. */
export interface Ran {
  readonly result: Result;
  readonly rows: readonly Fields[];
  /** How long the last page took, in milliseconds. */
  readonly milliseconds: number;
  readonly pages: number;
}

export interface Run {
  readonly status: "idle" | "running" | "done" | "failed" | "stopped";
  /** What was asked last; null before the first run. */
  readonly request: RunRequest | null;
  /** The newest result, which stays while the next one is being read. */
  readonly ran: Ran | null;
  /** When the run started, on the clock of the page. */
  readonly started: number;
  readonly problem: Problem | null;
  /** Where the query is not well-formed, if that is why it failed. */
  readonly fault: Fault | null;
}

export const IDLE: Run = { status: "idle", request: null, ran: null, started: 0, problem: null, fault: null };

export interface Runner {
  /** The run of a tab; a signal of its own. */
  of(tab: number): Signal<Run>;
  start(tab: number, request: RunRequest): Promise<void>;
  /** Reads the next page of a tab's result and adds it. */
  more(tab: number): Promise<void>;
  /** Gives a run up, and tells whether there was one. */
  stop(tab: number): boolean;
  stopAll(): void;
}

/** Joins a page to those before it. */
function joined(before: Ran | null, result: Result, milliseconds: number): Ran {
  if (before === null) return { result, rows: result.rows, milliseconds, pages: 1 };
  const columns = [...new Set([...before.result.columns, ...result.columns])];
  return {
    result: { ...result, columns, schema: { ...before.result.schema, ...result.schema } },
    rows: [...before.rows, ...result.rows],
    milliseconds,
    pages: before.pages + 1,
  };
}

export function createRunner(organization: string): Runner {
  const runs = new Map<number, Signal<Run>>();
  const readings = new Map<number, AbortController>();
  const runOf = (tab: number): Signal<Run> => {
    const known = runs.get(tab) ?? signal<Run>(IDLE);
    runs.set(tab, known);
    return known;
  };
  const stop = (tab: number): boolean => {
    const reading = readings.get(tab);
    readings.delete(tab);
    reading?.abort();
    return reading !== undefined;
  };
  const read = async (tab: number, request: RunRequest, before: Ran | null): Promise<void> => {
    stop(tab);
    const reading = new AbortController();
    readings.set(tab, reading);
    const state = runOf(tab);
    const started = performance.now();
    state.value = { ...state.peek(), status: "running", request, started, problem: null, fault: null };
    try {
      const result = await run(organization, request, reading.signal);
      if (reading.signal.aborted) return;
      state.value = { ...state.peek(), status: "done", ran: joined(before, result, performance.now() - started) };
    } catch (error) {
      if (isAbort(error) || reading.signal.aborted) {
        if (!readings.has(tab)) state.value = { ...state.peek(), status: "stopped" };
        return;
      }
      const problem = problemOf(error, Date.now());
      state.value = { ...state.peek(), status: "failed", problem, fault: faultOf(error) };
    } finally {
      if (readings.get(tab) === reading) readings.delete(tab);
    }
  };
  return {
    of: runOf,
    start: (tab, request) => read(tab, request, null),
    more: async (tab) => {
      const { ran, request } = runOf(tab).peek();
      const cursor = ran?.result.cursor ?? null;
      if (ran !== null && request !== null && cursor !== null) await read(tab, { ...request, cursor }, ran);
    },
    stop,
    stopAll: () => {
      for (const tab of [...readings.keys()]) stop(tab);
    },
  };
}
