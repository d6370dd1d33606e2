// How far reviewers agree: the share of equal pairs, the mean difference, and Krippendorff's alpha.

/** A value that a reviewer gave a row. */
export interface Rated {
  readonly of: string;
  readonly value: number | string;
}

export interface Agreement {
  /** The rows with values of at least two reviewers. */
  readonly rows: number;
  /** The share of pairs of reviewers of one row whose values are equal; null without pairs. */
  readonly equal: number | null;
  /** The mean difference of such pairs; null without pairs and for values that are no numbers. */
  readonly difference: number | null;
  /**
   * Krippendorff's alpha: 1 for values that all agree, 0 for what chance would bring, less for worse. The distance of
   * numbers is the square of their difference, that of names whether they differ. It is null where all values are the same.
   */
  readonly alpha: number | null;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** How many ordered pairs of values are equal. */
function equalPairs(values: readonly (number | string)[]): number {
  const counts = new Map<number | string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return sum([...counts.values()].map((count) => count * (count - 1)));
}

const pairsOf = (count: number): number => count * (count - 1);

/** The sum of the squared differences of all ordered pairs. The mean is taken away first, which keeps digits. */
function squares(values: readonly number[]): number {
  const mean = sum(values) / values.length;
  return 2 * values.length * sum(values.map((value) => (value - mean) ** 2));
}

/** The sum of the differences of all ordered pairs. */
function differences(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return 2 * sum(sorted.map((value, index) => value * (2 * index - sorted.length + 1)));
}

const numbersIn = (values: readonly (number | string)[]): readonly number[] | null => {
  const numbers = values.filter((value) => typeof value === "number");
  return numbers.length === values.length ? numbers : null;
};

/** The distances of all ordered pairs: squares of differences on a scale, else one for each pair that differs. */
function distances(values: readonly (number | string)[], isScale: boolean): number {
  const numbers = isScale ? numbersIn(values) : null;
  return numbers === null ? pairsOf(values.length) - equalPairs(values) : squares(numbers);
}

function alphaOf(rows: readonly (readonly (number | string)[])[], isScale: boolean): number | null {
  const all = rows.flat();
  const expected = distances(all, isScale) / pairsOf(all.length);
  if (all.length === 0 || expected <= 1e-12) return null;
  const observed = sum(rows.map((values) => distances(values, isScale) / (values.length - 1))) / all.length;
  return 1 - observed / expected;
}

/** Compares the values that reviewers gave the same rows. On a scale, near values agree more than far ones. */
export function agreementOf(rated: readonly Rated[], isScale: boolean): Agreement {
  const byRow = new Map<string, (number | string)[]>();
  for (const { of, value } of rated) {
    const values = byRow.get(of);
    if (values === undefined) byRow.set(of, [value]);
    else values.push(value);
  }
  const rows = [...byRow.values()].filter((values) => values.length > 1);
  const pairs = sum(rows.map((values) => pairsOf(values.length)));
  const numbers = isScale ? rows.map(numbersIn) : [];
  const isAllNumbers = isScale && numbers.every((one) => one !== null);
  const share = (total: number): number | null => (pairs === 0 ? null : total / pairs);
  return {
    rows: rows.length,
    equal: share(sum(rows.map(equalPairs))),
    difference: isAllNumbers ? share(sum(numbers.map((one) => differences(one ?? [])))) : null,
    alpha: alphaOf(rows, isScale),
  };
}
