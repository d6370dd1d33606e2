// Turns cells into rows of an experiment: a root row each, with the spans that ran below it.
import type { Fields } from "../../api/narrow";
import type { Cell } from "./cells";
import type { PlayRow } from "./rows";

/** What a cell ran, for its root row. */
export interface Ran {
  readonly row: PlayRow;
  readonly cell: Cell;
  /** What the row says of the variant: prompt, model and parameters. */
  readonly metadata: Fields;
}

/** The scores of a cell by their names. A scorer that skipped the row gives none. */
const scoresOf = (cell: Cell): Fields =>
  Object.fromEntries(cell.scores.filter(({ value }) => value !== null).map(({ name, value }) => [name, value]));

/** The scorers of a cell that failed, and why. */
const faultsOf = (cell: Cell): Fields =>
  Object.fromEntries(cell.scores.flatMap(({ name, error }) => (error === null ? [] : [[name, error]])));

/** Whether a cell has run to an end that can be saved. */
export const isSavable = (cell: Cell | null): cell is Cell =>
  cell !== null && cell.root !== "" && (cell.state === "done" || cell.state === "failed");

/** The root row of a run. Its id is the one that the spans below it name as their parent. */
export function rootOf({ row, cell, metadata }: Ran, id: string): Fields {
  const faults = faultsOf(cell);
  const hasFaults = Object.keys(faults).length > 0;
  return {
    id,
    span_id: cell.root,
    root_span_id: cell.root,
    input: row.input,
    expected: row.expected,
    output: cell.state === "failed" ? null : cell.value,
    ...(cell.failure === null ? {} : { error: cell.failure.message }),
    scores: scoresOf(cell),
    metadata: { ...row.metadata, ...metadata, ...(hasFaults ? { scorer_errors: faults } : {}) },
    ...(Array.isArray(row.tags) ? { tags: row.tags } : {}),
    ...(row.origin === null ? {} : { origin: row.origin }),
    metrics: { start: (cell.started ?? 0) / 1000, end: (cell.ended ?? cell.started ?? 0) / 1000 },
    span_attributes: { name: "eval", type: "eval" },
    ...(cell.started === null ? {} : { created: new Date(cell.started).toISOString() }),
  };
}

/** How many runs are read and written at once. */
export const RUNS_AT_ONCE = 25;

/** What saving needs of the server. */
export interface SavingServer {
  readonly spans: (roots: readonly string[]) => Promise<readonly Fields[]>;
  readonly insert: (events: readonly Fields[]) => Promise<void>;
}

/** Copies runs with all of their spans, some at once, and tells how many are done. */
export async function saveRuns(runs: readonly Ran[], server: SavingServer, onDone: (done: number) => void): Promise<void> {
  for (let at = 0; at < runs.length; at += RUNS_AT_ONCE) {
    const some = runs.slice(at, at + RUNS_AT_ONCE);
    const spans = await server.spans(some.map(({ cell }) => cell.root));
    await server.insert([...some.map((run) => rootOf(run, run.cell.root)), ...spans]);
    onDone(at + some.length);
  }
}
