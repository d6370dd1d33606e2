// What model calls took, as the page draws it: a line for each model over the buckets of a range, and the sums of models.
import type { Spent } from "../../api/usage";
import { bucketsOf, bucketStart, widthFor, widthFrom, type Extent, type Width } from "../../lib/buckets";

const DAY_MS = 86_400_000;
const MOST_BUCKETS = 92;
/** How many models have a line of their own. */
const MOST_LINES = 7;
export const OTHERS = "Other models";
export const UNNAMED = "No model named";

export interface ModelSum {
  readonly name: string;
  readonly calls: number;
  readonly prompt: number;
  readonly completion: number;
  readonly cost: number | null;
}

export interface SpendingLine {
  readonly name: string;
  readonly values: readonly number[];
}

export interface Spending {
  readonly xs: readonly number[];
  readonly cost: readonly SpendingLine[];
  readonly tokens: readonly SpendingLine[];
  /** The sums by model, the dearest first. */
  readonly models: readonly ModelSum[];
  readonly total: ModelSum;
}

/** The width of the buckets of an extent: a day, or more days where they would be too many. */
export const widthOf = (extent: Extent): Width => widthFrom(Math.max(DAY_MS, widthFor(extent, MOST_BUCKETS).milliseconds));

const nothing = (name: string): ModelSum => ({ name, calls: 0, prompt: 0, completion: 0, cost: null });

const added = (sum: ModelSum, more: Omit<ModelSum, "name">): ModelSum => ({
  name: sum.name,
  calls: sum.calls + more.calls,
  prompt: sum.prompt + more.prompt,
  completion: sum.completion + more.completion,
  cost: more.cost === null ? sum.cost : (sum.cost ?? 0) + more.cost,
});

export const tokensOf = ({ prompt, completion }: Pick<ModelSum, "prompt" | "completion">): number => prompt + completion;

function sumsOf(rows: readonly Spent[]): readonly ModelSum[] {
  const sums = new Map<string, ModelSum>();
  for (const row of rows) {
    const name = row.model ?? UNNAMED;
    sums.set(name, added(sums.get(name) ?? nothing(name), row));
  }
  return [...sums.values()].sort(
    (a, b) => (b.cost ?? -1) - (a.cost ?? -1) || tokensOf(b) - tokensOf(a) || (a.name < b.name ? -1 : 1),
  );
}

export function spendingOf(rows: readonly Spent[], extent: Extent, tzOffset: number): Spending {
  const width = widthOf(extent);
  const xs = bucketsOf(extent, width, tzOffset, MOST_BUCKETS + 1);
  const places = new Map(xs.map((x, place) => [x, place]));
  const models = sumsOf(rows);
  const linesOf = (valueOf: (row: Spent) => number): readonly SpendingLine[] => {
    const heights = new Map<string, number>();
    for (const row of rows) heights.set(row.model ?? UNNAMED, (heights.get(row.model ?? UNNAMED) ?? 0) + valueOf(row));
    const high = [...heights].filter(([, height]) => height > 0).sort((a, b) => b[1] - a[1]);
    const own = new Set(high.slice(0, high.length > MOST_LINES + 1 ? MOST_LINES : high.length).map(([name]) => name));
    const names = [...own, ...(high.length > own.size ? [OTHERS] : [])];
    const lines = new Map(names.map((name) => [name, xs.map(() => 0)]));
    for (const row of rows) {
      const values = lines.get(own.has(row.model ?? UNNAMED) ? (row.model ?? UNNAMED) : OTHERS);
      const place = places.get(bucketStart(row.at, width, tzOffset));
      if (values !== undefined && place !== undefined) values[place] = (values[place] ?? 0) + valueOf(row);
    }
    return [...lines].map(([name, values]) => ({ name, values }));
  };
  return {
    xs,
    cost: linesOf((row) => row.cost ?? 0),
    tokens: linesOf(tokensOf),
    models,
    total: models.reduce(added, nothing("All models")),
  };
}
