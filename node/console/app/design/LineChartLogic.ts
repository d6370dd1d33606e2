// The arithmetic of charts: which colour a name has, and how ticks and values are written.
import { clock, day } from "../lib/time";
import type { Zone } from "../lib/preferences";

export const COLOURS = 8;

/** The number of the colour of what is bad, which no name has by chance. */
const BAD = COLOURS;

interface Coloured {
  readonly name: string;
  readonly tone?: "accent" | "bad";
}

/** The line of a chart from which on lines are dashed too, so that they differ without their hue. */
const FIRST_DASHED = 2;

const hash = (text: string): number => {
  let value = 2166136261;
  for (const character of text) value = Math.imul(value ^ (character.codePointAt(0) ?? 0), 16777619) >>> 0;
  return value;
};

/**
 * The colours of names, by their number from 0. A name has the same colour in every chart, unless another name of this
 * chart has it already: then it has the next one that is free. A tone settles the colour.
 */
export function coloursOf(lines: readonly Coloured[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const taken = new Set<number>();
  for (const { name, tone } of lines) if (tone !== undefined) found.set(name, tone === "bad" ? BAD : 0);
  for (const name of lines.map((line) => line.name).toSorted()) {
    if (found.has(name)) continue;
    let colour = hash(name) % COLOURS;
    for (let step = 0; step < COLOURS && taken.has(colour) && taken.size < COLOURS; step += 1) colour = (colour + 1) % COLOURS;
    taken.add(colour);
    found.set(name, colour);
  }
  return found;
}

const DASHES: readonly (readonly number[])[] = [[6, 3], [2, 3], [10, 3, 2, 3], [4, 2], [8, 4, 2, 4, 2, 4], [1, 2]];

/** The dashes of a line in pixels, by its place in the chart; an empty list for none. */
export const dashOf = (index: number): readonly number[] =>
  index < FIRST_DASHED ? [] : (DASHES[(index - FIRST_DASHED) % DASHES.length] ?? []);

const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
const exact = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });

/** A value at an axis. */
export const tickText = (value: number): string =>
  Math.abs(value) >= 10_000 ? short.format(value).replace("K", "k") : exact.format(value);

/** A value in the legend. */
export const valueText = (value: number | null | undefined): string =>
  value === null || value === undefined ? "-" : exact.format(value);

/** Moments at an axis: the time of day, with the day where it changes. `step` is the distance of ticks in milliseconds. */
export function momentTicks(moments: readonly number[], step: number, zone: Zone): readonly string[] {
  let before = "";
  return moments.map((value) => {
    const moment = new Date(value);
    const date = day(moment, zone);
    const isNewDay = date !== before;
    before = date;
    if (step >= 86_400_000) return date.slice(5);
    const time = clock(moment, zone).slice(0, step < 60_000 ? 8 : 5);
    return isNewDay ? `${time}\n${date.slice(5)}` : time;
  });
}

/** A moment at the cursor. */
export const momentText = (value: number, zone: Zone): string => {
  const moment = new Date(value);
  return `${day(moment, zone)} ${clock(moment, zone).slice(0, 8)}`;
};
