// A cell: the answer of a column's prompt to a row, from its turn in the queue to its last score.
import { NOTHING_GATHERED, valueOf, type Gathered } from "../../api/invoke";
import type { RunFigures, ScoreGiven } from "../../api/playgroundRuns";
import { printJson } from "../../lib/json";

export type CellState = "waiting" | "running" | "scoring" | "done" | "failed" | "stopped";

export interface CellFailure {
  readonly message: string;
  /** Whether the model has no AI secret. */
  readonly isWithoutSecret: boolean;
}

export interface Cell {
  readonly state: CellState;
  /** The state before the cell began to wait; null for a cell that never ran. */
  readonly before: CellState | null;
  readonly answer: Gathered;
  readonly value: unknown;
  readonly failure: CellFailure | null;
  readonly scores: readonly ScoreGiven[];
  /** The root span of the run; empty before the first one. */
  readonly root: string;
  /** In milliseconds since 1970. */
  readonly started: number | null;
  readonly ended: number | null;
  readonly figures: RunFigures | null;
  /** What ran, as `signatureOf` has it. */
  readonly of: string;
}

const IDLE: Cell = {
  state: "waiting",
  before: null,
  answer: NOTHING_GATHERED,
  value: null,
  failure: null,
  scores: [],
  root: "",
  started: null,
  ended: null,
  figures: null,
  of: "",
};

/** A cell that waits. What it had before is still shown. */
export const queued = (cell: Cell | null): Cell =>
  cell === null ? IDLE : { ...cell, state: "waiting", before: cell.state === "waiting" ? cell.before : cell.state };

/** A cell that does not wait any longer; null if it never ran. */
export const unqueued = (cell: Cell): Cell | null =>
  cell.before === null ? null : { ...cell, state: cell.before, before: null };

export const begun = (root: string, of: string, started: number): Cell => ({ ...IDLE, state: "running", root, of, started });

export const heard = (cell: Cell, answer: Gathered): Cell => ({ ...cell, answer });

export const failed = (cell: Cell, failure: CellFailure, ended: number): Cell => ({ ...cell, state: "failed", failure, ended });

export const stopped = (cell: Cell, ended: number): Cell => ({ ...cell, state: "stopped", ended: cell.ended ?? ended });

export const answered = (cell: Cell, answer: Gathered, ended: number): Cell => ({
  ...cell,
  state: "scoring",
  answer,
  value: valueOf(answer),
  ended,
});

/** Adds scores, in the place of those of the same names. */
export function scored(cell: Cell, scores: readonly ScoreGiven[]): Cell {
  const names = new Set(scores.map(({ scorer }) => scorer));
  return { ...cell, scores: [...cell.scores.filter(({ scorer }) => !names.has(scorer)), ...scores] };
}

export const finished = (cell: Cell): Cell => ({ ...cell, state: "done" });

/** Whether a cell has an answer that can be scored and saved. */
export const hasAnswer = ({ state, before }: Cell): boolean =>
  state === "done" || state === "scoring" || (state === "waiting" && before === "done");

/** Whether a cell waits, or runs. */
export const isUnderWay = (cell: Cell | null): boolean =>
  cell !== null && (cell.state === "waiting" || cell.state === "running" || cell.state === "scoring");

/** Whether something of a cell failed: its answer, or one of its scorers. */
export const isFaulty = ({ state, scores }: Cell): boolean =>
  state === "failed" || (state === "done" && scores.some(({ error }) => error !== null));

/** The time of the answer in milliseconds: what the server measured, else what the page waited. */
export function timeOf({ figures, started, ended }: Cell): number | null {
  if (figures?.duration != null) return figures.duration;
  return started === null || ended === null ? null : ended - started;
}

/** What a cell shows: the text so far, or the value as JSON. */
export function textOf({ state, before, answer, value }: Cell): string {
  const isWhole = state === "done" || state === "scoring" || before === "done";
  if (!isWhole) return answer.json === "" ? answer.text : answer.json;
  return typeof value === "string" ? value : printJson(value);
}
