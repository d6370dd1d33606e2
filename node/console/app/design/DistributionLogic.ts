// The heights of the bars of a distribution, and its words.

export interface Bars {
  readonly own: readonly number[];
  readonly other: readonly number[];
}

const total = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);

const sharesOf = (counts: readonly number[]): readonly number[] => {
  const all = total(counts);
  return counts.map((count) => (all === 0 ? 0 : count / all));
};

/** The heights of both distributions in one scale: the largest share is as high as the drawing. */
export function barsOf(counts: readonly number[], base: readonly number[], height: number): Bars {
  const [own, other] = [sharesOf(counts), sharesOf(base)];
  const most = Math.max(0, ...own, ...other);
  const scaled = (share: number): number => (most === 0 || share === 0 ? 0 : Math.max(1, (share / most) * height));
  return { own: own.map(scaled), other: other.map(scaled) };
}

/** A distribution in a few words, for those who do not see it: `24 at 0, 3 between, 73 above 0.9`. */
export function distributionWords(counts: readonly number[]): string {
  const first = counts[0] ?? 0;
  const last = counts.at(-1) ?? 0;
  const all = total(counts);
  if (all === 0) return "no values";
  return `${first} at 0, ${all - first - last} between, ${last} above 0.9`;
}
