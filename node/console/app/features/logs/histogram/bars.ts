// The bars of the histogram: how wide they are, where they start, and what an axis says below them.
import type { Fields } from "../../../api/narrow";
import type { Zone } from "../../../lib/preferences";
import { clock, day } from "../../../lib/time";

export interface Width {
  readonly amount: number;
  readonly unit: "second" | "minute" | "hour" | "day";
  readonly milliseconds: number;
}

export interface Bar {
  readonly start: number;
  readonly end: number;
  readonly count: number;
  /** How many of them failed. */
  readonly errors: number;
}

/** From a moment up to another one that does not belong to it. */
export interface Extent {
  readonly from: number;
  readonly to: number;
}

const MAX_BARS = 120;
const MINUTE_MS = 60_000;

const UNIT_MS: Readonly<Record<Width["unit"], number>> = {
  second: 1000,
  minute: MINUTE_MS,
  hour: 3_600_000,
  day: 86_400_000,
};

const widths = (unit: Width["unit"], ...amounts: readonly number[]): readonly Width[] =>
  amounts.map((amount) => ({ amount, unit, milliseconds: amount * UNIT_MS[unit] }));

const WIDTHS: readonly Width[] = [
  ...widths("second", 1, 2, 3, 5, 10, 15, 30),
  ...widths("minute", 1, 2, 3, 5, 10, 15, 30),
  ...widths("hour", 1, 2, 3, 4, 6, 12),
  ...widths("day", 1, 2, 3, 5, 7, 14, 28, 56, 112, 224, 448, 896, 1792, 3584, 7168, 14_336, 28_672),
];

const LAST_WIDTH: Width = { amount: 28_672, unit: "day", milliseconds: 28_672 * UNIT_MS.day };

/** How many bars cover an extent, counting those that lie in it partly. */
const barsIn = ({ from, to }: Extent, milliseconds: number): number => Math.ceil((to - from) / milliseconds) + 1;

/** The smallest width that needs no more than 120 bars. */
export const widthFor = (extent: Extent): Width =>
  WIDTHS.find(({ milliseconds }) => barsIn(extent, milliseconds) <= MAX_BARS) ?? LAST_WIDTH;

/** The unit as `date_trunc` takes it: `minute`, `15 minutes`. */
export const unitOf = ({ amount, unit }: Width): string => (amount === 1 ? unit : `${amount} ${unit}s`);

/** The start of the bar that holds a moment. Bars are aligned to midnight of the zone, as the server aligns them. */
export function barStart(moment: number, { milliseconds }: Width, tzOffset: number): number {
  const shift = tzOffset * MINUTE_MS;
  return Math.floor((moment - shift) / milliseconds) * milliseconds + shift;
}

const numberOf = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0);

/** All bars of an extent in their order, with those of which the server said nothing because they are empty. */
export function barsOf(rows: readonly Fields[], extent: Extent, width: Width, tzOffset: number): readonly Bar[] {
  const byStart = new Map<number, Fields>();
  for (const row of rows) if (typeof row["t"] === "string") byStart.set(Date.parse(row["t"]), row);
  const bars: Bar[] = [];
  let start = barStart(extent.from, width, tzOffset);
  for (; start < extent.to && bars.length <= MAX_BARS; start += width.milliseconds) {
    const row = byStart.get(start);
    const count = numberOf(row?.["n"]);
    const errors = Math.min(count, numberOf(row?.["errors"]));
    bars.push({ start, end: start + width.milliseconds, count, errors });
  }
  return bars;
}

/** The part of a bar that lies within the extent. */
export const clipped = ({ start, end }: Pick<Bar, "start" | "end">, { from, to }: Extent): Extent => ({
  from: Math.max(start, from),
  to: Math.min(end, to),
});

/** The extent from one bar to another, in either order. */
export function spanned(bars: readonly Bar[], one: number, other: number, extent: Extent): Extent | null {
  const first = bars[Math.min(one, other)];
  const last = bars[Math.max(one, other)];
  if (first === undefined || last === undefined) return null;
  return clipped({ start: first.start, end: last.end }, extent);
}

export interface Tick {
  readonly at: number;
  readonly label: string;
}

/** Labels of the axis, no more than `most`, at round times of the zone. */
export function ticksOf(extent: Extent, most: number, zone: Zone, tzOffset: number): readonly Tick[] {
  const wanted = (extent.to - extent.from) / Math.max(1, most);
  const width = WIDTHS.find(({ milliseconds }) => milliseconds >= wanted) ?? LAST_WIDTH;
  const ticks: Tick[] = [];
  let at = barStart(extent.from, width, tzOffset);
  for (; at < extent.to && ticks.length <= most + 1; at += width.milliseconds) {
    if (at < extent.from) continue;
    ticks.push({ at, label: tickLabel(new Date(at), width, zone) });
  }
  return ticks;
}

function tickLabel(moment: Date, { unit }: Width, zone: Zone): string {
  const time = clock(moment, zone);
  if (unit === "day" || time === "00:00:00.000") return day(moment, zone);
  return unit === "second" ? time.slice(0, 8) : time.slice(0, 5);
}

/** An extent in words; the day of the end only if it is another one. */
export function extentWords({ from, to }: Extent, zone: Zone): string {
  const [first, last] = [new Date(from), new Date(to)];
  const timeOf = (moment: Date): string => clock(moment, zone).replace(/(?::00)?\.\d{3}$/, "");
  const isOneDay = day(first, zone) === day(last, zone);
  const end = isOneDay ? timeOf(last) : `${day(last, zone)} ${timeOf(last)}`;
  return `${day(first, zone)} ${timeOf(first)} to ${end}`;
}
