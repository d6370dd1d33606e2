// What is counted of the cells of a column, and of all cells.
import { isFaulty, isUnderWay, timeOf, type Cell } from "./cells";

export interface MeanScore {
  readonly name: string;
  readonly mean: number;
  readonly count: number;
}

export interface Figures {
  /** Cells that ran to their end. */
  readonly done: number;
  /** Cells whose answer failed. */
  readonly failed: number;
  /** Cells of which something failed. */
  readonly faulty: number;
  /** Cells that wait or run. */
  readonly open: number;
  readonly scores: readonly MeanScore[];
  /** The mean time of an answer, in milliseconds. */
  readonly time: number | null;
  readonly tokens: number | null;
  /** In dollars. */
  readonly cost: number | null;
}

const added = (sum: number | null, value: number | null | undefined): number | null =>
  value == null ? sum : (sum ?? 0) + value;

/** Counts cells; those that never ran are null. */
export function figuresOf(cells: Iterable<Cell | null>): Figures {
  const sums = new Map<string, { sum: number; count: number }>();
  let [done, failed, faulty, open, times] = [0, 0, 0, 0, 0];
  let [time, tokens, cost]: (number | null)[] = [null, null, null];
  for (const cell of cells) {
    if (cell === null) continue;
    if (isUnderWay(cell)) open += 1;
    if (cell.state === "failed") failed += 1;
    if (isFaulty(cell)) faulty += 1;
    tokens = added(tokens ?? null, cell.figures?.tokens);
    cost = added(cost ?? null, cell.figures?.cost);
    if (cell.state !== "done") continue;
    done += 1;
    const own = timeOf(cell);
    if (own !== null) times += 1;
    time = added(time ?? null, own);
    for (const { name, value } of cell.scores) {
      if (value === null) continue;
      const before = sums.get(name) ?? { sum: 0, count: 0 };
      sums.set(name, { sum: before.sum + value, count: before.count + 1 });
    }
  }
  return {
    done,
    failed,
    faulty,
    open,
    scores: [...sums].map(([name, { sum, count }]) => ({ name, mean: sum / count, count })),
    time: time == null || times === 0 ? null : time / times,
    tokens: tokens ?? null,
    cost: cost ?? null,
  };
}
