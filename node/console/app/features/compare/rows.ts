// The rows of the table: pairs, and below an unfolded pair its trials.
import type { Pair } from "../../api/comparison";

export interface TableRow {
  readonly id: string;
  readonly pair: Pair;
  /** The number of the trial from 0; null for the pair itself. */
  readonly trial: number | null;
}

/** The ids of all rows of a pair, those of the experiment that is looked at first. */
export const pairIdsOf = (pair: Pair): readonly string[] =>
  pair.cells.flatMap(({ trials }) => trials.flatMap(({ id, rootSpanId }) => (id === rootSpanId ? [id] : [id, rootSpanId])));

/** The id that stands for a pair: the one of its first row. */
export const pairIdOf = (pair: Pair): string => pairIdsOf(pair)[0] ?? pair.key;

/** How many trials the experiment with the most of them has. */
export const trialsOf = (pair: Pair): number => Math.max(...pair.cells.map(({ trials }) => trials.length));

const SEPARATOR = "\u0000";

/** The id of the pair that a row of the table belongs to. */
export const pairOfRow = (id: string): string => id.split(SEPARATOR, 1)[0] ?? id;

/** The rows of pairs, with the trials of those that are unfolded. */
export function tableRows(pairs: readonly Pair[], unfolded: ReadonlySet<string>): readonly TableRow[] {
  return pairs.flatMap((pair): readonly TableRow[] => {
    const id = pairIdOf(pair);
    const row: TableRow = { id, pair, trial: null };
    const trials = unfolded.has(id) ? trialsOf(pair) : 0;
    if (trials < 2) return [row];
    return [row, ...Array.from({ length: trials }, (_, trial) => ({ id: `${id}${SEPARATOR}${trial}`, pair, trial }))];
  });
}

/** What a pair is, for the mark in front of it. */
export type Mark = "new" | "missing" | "up" | "down" | "same" | "none";

const SAME_WITHIN = 1e-9;

/** The mark of a pair: of the experiment that is looked at, against the base at `base`. */
export function markOf(pair: Pair, base: string | null, score: string): Mark {
  const main = pair.cells[0];
  const other = pair.cells.find(({ experiment }) => experiment === base);
  if (main === undefined || other === undefined || other === main) return "none";
  if (other.trials.length === 0) return "new";
  if (main.trials.length === 0) return "missing";
  const delta = main.deltas[score];
  if (delta === undefined) return "none";
  if (Math.abs(delta) <= SAME_WITHIN) return "same";
  return delta > 0 ? "up" : "down";
}

export const hasError = (pair: Pair): boolean => (pair.cells[0]?.trials ?? []).some(({ error }) => error !== null);

/** The paths below metadata that rows have, for grouping. */
export function metadataPaths(pairs: readonly Pair[]): readonly string[] {
  const keys = new Set<string>();
  for (const { cells } of pairs) {
    for (const { metadata } of cells.flatMap(({ trials }) => trials)) {
      if (typeof metadata === "object" && metadata !== null) for (const key of Object.keys(metadata)) keys.add(key);
    }
  }
  return [...keys].sort().map((key) => (/^[A-Za-z_][\w$]*$/.test(key) ? `metadata.${key}` : `metadata.\`${key.replaceAll("`", "``")}\``));
}
