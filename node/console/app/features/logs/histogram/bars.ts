// The bars of the histogram: how wide they are, where they start, and what an axis says below them.
import type { Fields } from "../../../api/narrow";
import { bucketsOf, bucketStart, widthFor, widthFrom, type Extent, type Width } from "../../../lib/buckets";
import type { Zone } from "../../../lib/preferences";
import { clock, day } from "../../../lib/time";

export interface Bar {
  readonly start: number;
  readonly end: number;
  readonly count: number;
  /** How many of them failed. */
  readonly errors: number;
}

const MAX_BARS = 120;

/** The smallest width that needs no more than 120 bars. */
export const barWidth = (extent: Extent): Width => widthFor(extent, MAX_BARS);

const numberOf = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0);

/** All bars of an extent in their order, with those of which the server said nothing because they are empty. */
export function barsOf(rows: readonly Fields[], extent: Extent, width: Width, tzOffset: number): readonly Bar[] {
  const byStart = new Map<number, Fields>();
  for (const row of rows) if (typeof row["t"] === "string") byStart.set(Date.parse(row["t"]), row);
  return bucketsOf(extent, width, tzOffset, MAX_BARS).map((start) => {
    const row = byStart.get(start);
    const count = numberOf(row?.["n"]);
    const errors = Math.min(count, numberOf(row?.["errors"]));
    return { start, end: start + width.milliseconds, count, errors };
  });
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
  const width = widthFrom(wanted);
  const ticks: Tick[] = [];
  let at = bucketStart(extent.from, width, tzOffset);
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
