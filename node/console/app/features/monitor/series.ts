// What a card draws: the answer of its query as lines over buckets of time, and what is said about them.
import type { Fields } from "../../api/narrow";
import type { ChartLine } from "../../design/LineChart";
import type { Extent } from "../../lib/buckets";
import { measureAlias, type Unit } from "./cards";
import { duration, exactCount, money, NOTHING, shortCount } from "../../lib/numbers";

/** A value of a group that can be compared with. */
export type GroupValue = string | number | boolean;

/** The lines of all cards of a grouped monitor. */
export interface Groups {
  readonly values: readonly GroupValue[];
  /** Whether there are more values than those, which are drawn together as one line. */
  readonly hasOther: boolean;
}

/** How many values of a group have a line of their own. */
export const MOST_LINES = 8;

export const OTHER = "other";

export interface Drawn {
  readonly extent: Extent;
  /** The starts of buckets. */
  readonly xs: readonly number[];
  readonly bucketMs: number;
  /** The lines of each measure, by its place. */
  readonly measures: readonly (readonly ChartLine[])[];
}

const numberOf = (value: unknown): number | null => {
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "number" && Number.isFinite(value) ? value : null;
};

export const valueName = (value: GroupValue): string => (value === "" ? '""' : String(value));

/** The names of lines, which differ even if two values are written alike, such as `1` and `"1"`. */
export function lineNames({ values, hasOther }: Groups): readonly string[] {
  const taken = new Set<string>();
  const names = values.map((value) => {
    let name = valueName(value);
    if (taken.has(name) || name === OTHER) name = JSON.stringify(value);
    taken.add(name);
    return name;
  });
  return hasOther ? [...names, OTHER] : names;
}

export interface Lines {
  readonly xs: readonly number[];
  readonly extent: Extent;
  readonly bucketMs: number;
  /** The names of the card's measures. */
  readonly measures: readonly string[];
  /** Null if the card is not grouped. */
  readonly groups: Groups | null;
  /** Whether a bucket without rows counts as 0. */
  readonly isSum: boolean;
}

/** Reads rows of `t`, `k` if there are groups, and `y0`, `y1`, .. into lines. */
export function drawnOf(rows: readonly Fields[], lines: Lines): Drawn {
  const { xs, extent, bucketMs, measures, groups, isSum } = lines;
  const places = new Map(xs.map((x, index) => [x, index]));
  const names = groups === null ? [""] : lineNames(groups);
  const empty = isSum ? 0 : null;
  const values = measures.map(() => names.map(() => xs.map((): number | null => empty)));
  for (const row of rows) {
    const place = typeof row["t"] === "string" ? places.get(Date.parse(row["t"])) : undefined;
    const group = groups === null ? 0 : numberOf(row["k"]);
    if (place === undefined || group === null) continue;
    for (const index of measures.keys()) {
      const line = values[index]?.[group];
      if (line !== undefined) line[place] = numberOf(row[measureAlias(index)]) ?? empty;
    }
  }
  const nameOf = (measure: string, name: string): string => (groups === null ? measure : name);
  return {
    extent,
    xs,
    bucketMs,
    measures: values.map((ofMeasure, index) =>
      ofMeasure.map((line, place) => ({ name: nameOf(measures[index] ?? "", names[place] ?? ""), values: line })),
    ),
  };
}

/** The lines that a card shows: of a grouped one those of the chosen measure, else one line for each measure. */
export const shownLines = ({ measures }: Drawn, isGrouped: boolean, chosen: number): readonly ChartLine[] =>
  isGrouped ? (measures[chosen] ?? measures[0] ?? []) : measures.flat();

export const isNothing = (lines: readonly ChartLine[], isSum: boolean): boolean =>
  lines.every(({ values }) => values.every((value) => value === null || (isSum && value === 0)));

const plain = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });

/** Writes a value of a card in full. */
export function unitText(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined) return NOTHING;
  switch (unit) {
    case "seconds":
      return duration(value * 1000);
    case "dollars":
      return money(value);
    case "percent":
      return `${plain.format(value * 100)} %`;
    case "number":
      return Number.isInteger(value) ? exactCount(value) : plain.format(value);
  }
}

/** Writes a value at an axis or above a card. */
export const shortUnitText = (value: number | null | undefined, unit: Unit): string =>
  unit === "number" && value !== null && value !== undefined && Number.isInteger(value) ? shortCount(value) : unitText(value, unit);

export const totalOf = (lines: readonly ChartLine[]): number =>
  lines.reduce((all, { values }) => values.reduce<number>((sum, value) => sum + (value ?? 0), all), 0);

/** The largest value, with the bucket and the line that have it; null if there is none. */
export function largestOf(xs: readonly number[], lines: readonly ChartLine[]) {
  let found: { readonly value: number; readonly x: number; readonly line: string } | null = null;
  for (const { name, values } of lines) {
    for (const [index, value] of values.entries()) {
      if (value !== null && (found === null || value > found.value)) found = { value, x: xs[index] ?? 0, line: name };
    }
  }
  return found;
}
