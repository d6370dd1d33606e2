// Buckets of time, as `date_trunc` makes them: how wide they are for an extent, and where they start.

export interface Width {
  readonly amount: number;
  readonly unit: "second" | "minute" | "hour" | "day";
  readonly milliseconds: number;
}

/** From a moment up to another one that does not belong to it. */
export interface Extent {
  readonly from: number;
  readonly to: number;
}

const MINUTE_MS = 60_000;

const UNIT_MS: Readonly<Record<Width["unit"], number>> = {
  second: 1000,
  minute: MINUTE_MS,
  hour: 3_600_000,
  day: 86_400_000,
};

const widths = (unit: Width["unit"], ...amounts: readonly number[]): readonly Width[] =>
  amounts.map((amount) => ({ amount, unit, milliseconds: amount * UNIT_MS[unit] }));

const LAST_WIDTH: Width = { amount: 28_672, unit: "day", milliseconds: 28_672 * UNIT_MS.day };

const WIDTHS: readonly Width[] = [
  ...widths("second", 1, 2, 3, 5, 10, 15, 30),
  ...widths("minute", 1, 2, 3, 5, 10, 15, 30),
  ...widths("hour", 1, 2, 3, 4, 6, 12),
  ...widths("day", 1, 2, 3, 5, 7, 14, 28, 56, 112, 224, 448, 896, 1792, 3584, 7168, 14_336),
  LAST_WIDTH,
];

/** How many buckets cover an extent, counting those that lie in it partly. */
const bucketsIn = ({ from, to }: Extent, milliseconds: number): number => Math.ceil((to - from) / milliseconds) + 1;

/** The smallest width that needs no more than `most` buckets. */
export const widthFor = (extent: Extent, most: number): Width =>
  WIDTHS.find(({ milliseconds }) => bucketsIn(extent, milliseconds) <= most) ?? LAST_WIDTH;

/** The smallest width that is at least so many milliseconds. */
export const widthFrom = (wanted: number): Width =>
  WIDTHS.find(({ milliseconds }) => milliseconds >= wanted) ?? LAST_WIDTH;

/** The unit as `date_trunc` takes it: `minute`, `15 minutes`. */
export const unitOf = ({ amount, unit }: Width): string => (amount === 1 ? unit : `${amount} ${unit}s`);

/** The start of the bucket that holds a moment. Buckets are aligned to midnight of the zone, as the server aligns them. */
export function bucketStart(moment: number, { milliseconds }: Width, tzOffset: number): number {
  const shift = tzOffset * MINUTE_MS;
  return Math.floor((moment - shift) / milliseconds) * milliseconds + shift;
}

/** The starts of all buckets of an extent. */
export function bucketsOf(extent: Extent, width: Width, tzOffset: number, most: number): readonly number[] {
  const starts: number[] = [];
  let start = bucketStart(extent.from, width, tzOffset);
  for (; start < extent.to && starts.length <= most; start += width.milliseconds) starts.push(start);
  return starts;
}
