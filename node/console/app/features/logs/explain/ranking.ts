// Ranks fields by how differently two groups of rows have them: shares of values, and distributions of numbers.
import type { Fields } from "../../../api/narrow";
import { isScalar, type Scalar, type Step } from "../../../btql";

/** One of the two groups, and what was read of it. */
export interface Side {
  /** How many spans the group has, and how many traces. */
  readonly spans: number;
  readonly traces: number;
  /** How many spans were read. */
  readonly read: number;
}

export interface ValueShare {
  readonly value: Scalar;
  /** The share of the selection that has the value, from 0 to 1. */
  readonly inside: number;
  /** The share of the rest. */
  readonly outside: number;
  /** Whether the rest has so many values that this share is only known to be no larger. */
  readonly isAtMost: boolean;
}

export interface ValueField {
  readonly kind: "values";
  readonly path: readonly Step[];
  /** The values that differ most, the largest difference first. */
  readonly values: readonly ValueShare[];
  /** From 0 to 1. */
  readonly difference: number;
}

/** Numbers at equal steps of rank, from the least to the greatest. */
export type Quantiles = readonly number[];

export interface NumberField {
  readonly kind: "numbers";
  readonly path: readonly Step[];
  readonly inside: Quantiles;
  readonly outside: Quantiles;
  readonly difference: number;
}

export type ExplainedField = ValueField | NumberField;

export interface Counted {
  readonly value: Scalar;
  readonly count: number;
}

/** What was found of a field in one group. */
export interface Found {
  readonly path: readonly Step[];
  /** How many of the rows that were read have a value. */
  readonly count: number;
  readonly values: readonly Counted[];
  /** Whether there may be more values than those. */
  readonly isCut: boolean;
}

/** How many values an inference lists of a field. */
const LISTED = 10;
const SHOWN_VALUES = 4;

const keyOf = (value: unknown): string => JSON.stringify(value);

function countedOf(value: unknown): readonly Counted[] {
  if (typeof value !== "object" || value === null || !("value" in value) || !("count" in value)) return [];
  const { value: one, count } = value;
  return isScalar(one) && one !== null && typeof count === "number" ? [{ value: one, count }] : [];
}

/** Reads the rows of an inference. Values of a path that has several types are read together. */
export function foundOf(rows: readonly Fields[]): ReadonlyMap<string, Found> {
  const byPath = new Map<string, Found>();
  for (const { name, type, count, top_values: top } of rows) {
    const path = Array.isArray(name) ? name.filter((step) => typeof step === "string") : [];
    const isPlain = type === "string" || type === "number" || type === "boolean";
    if (!isPlain || path.length === 0 || typeof count !== "number") continue;
    const values = Array.isArray(top) ? top.flatMap(countedOf) : [];
    const before = byPath.get(keyOf(path));
    byPath.set(keyOf(path), {
      path,
      count: count + (before?.count ?? 0),
      values: [...values, ...(before?.values ?? [])],
      isCut: values.length >= LISTED || before?.isCut === true,
    });
  }
  return byPath;
}

/** How many rows an inference has read: all of them have a column of their own, if only null. */
export function readRows(rows: readonly Fields[]): number {
  const byColumn = new Map<string, number>();
  for (const { name, count } of rows) {
    if (!Array.isArray(name) || name.length !== 1 || typeof count !== "number") continue;
    byColumn.set(keyOf(name), (byColumn.get(keyOf(name)) ?? 0) + count);
  }
  return Math.max(0, ...byColumn.values());
}

/**
 * What a count is a share of. A field of one span in each trace is compared with the traces, a field of many spans with
 * the spans that have it, and everything with all spans if spans are listed.
 */
function wholeOf(found: Found | undefined, side: Side, isOfTraces: boolean): number {
  if (!isOfTraces) return side.read;
  const traces = side.spans === 0 ? 0 : side.traces * Math.min(1, side.read / side.spans);
  return Math.max(found?.count ?? 0, traces);
}

const shareOf = (count: number, whole: number): number => (whole <= 0 ? 0 : Math.min(1, count / whole));

/** The standard error of a difference of shares, with which chance alone could explain it. */
function errorOf(inside: number, outside: number, one: number, other: number): number {
  if (one <= 0 || other <= 0) return 1;
  // One more row with the value and one without it keep the error of rare values from being taken for nothing.
  const mean = (inside * one + outside * other + 1) / (one + other + 2);
  return Math.sqrt(mean * (1 - mean) * (1 / one + 1 / other));
}

/** How many standard errors a difference needs, as many values are compared at once. */
const SURE = 3;

/** The smallest difference of shares that is worth a line. */
const LEAST_DIFFERENCE = 0.03;

function sharesOf(inside: Found | undefined, outside: Found | undefined, one: number, other: number): readonly ValueShare[] {
  const counts = new Map((outside?.values ?? []).map(({ value, count }) => [keyOf(value), count]));
  const own = new Map((inside?.values ?? []).map(({ value, count }) => [keyOf(value), count]));
  const least = (found: Found | undefined): number =>
    found?.isCut === true ? Math.min(...found.values.map(({ count }) => count)) : 0;
  const values = new Map([...(inside?.values ?? []), ...(outside?.values ?? [])].map(({ value }) => [keyOf(value), value]));
  return [...values].flatMap(([key, value]) => {
    const [known, knownOther] = [own.get(key), counts.get(key)];
    const share = { inside: shareOf(known ?? least(inside), one), outside: shareOf(knownOther ?? least(outside), other) };
    // A share that is only known to be no larger cannot show that its group has more.
    const isUnsure = known === undefined ? share.inside >= share.outside : knownOther === undefined && share.outside >= share.inside;
    return isUnsure ? [] : [{ value, ...share, isAtMost: knownOther === undefined && outside?.isCut === true }];
  });
}

const differenceOf = ({ inside, outside }: ValueShare): number => Math.abs(inside - outside);

/** Compares one field of both groups; null if they have it alike as far as chance allows to say. */
function valueField(
  inside: Found | undefined,
  outside: Found | undefined,
  sides: { readonly inside: Side; readonly outside: Side; readonly isOfTraces: boolean },
): ValueField | null {
  const path = inside?.path ?? outside?.path;
  if (path === undefined) return null;
  const one = wholeOf(inside, sides.inside, sides.isOfTraces);
  const other = wholeOf(outside, sides.outside, sides.isOfTraces);
  const values = sharesOf(inside, outside, one, other)
    .filter((share) => differenceOf(share) > Math.max(LEAST_DIFFERENCE, SURE * errorOf(share.inside, share.outside, one, other)))
    .toSorted((a, b) => differenceOf(b) - differenceOf(a));
  const [first] = values;
  if (first === undefined) return null;
  return { kind: "values", path, values: values.slice(0, SHOWN_VALUES), difference: differenceOf(first) };
}

/** Compares all fields of two groups, those with the largest difference of shares first. */
export function rankedValues(
  inside: ReadonlyMap<string, Found>,
  outside: ReadonlyMap<string, Found>,
  sides: { readonly inside: Side; readonly outside: Side; readonly isOfTraces: boolean },
): readonly ValueField[] {
  const keys = new Set([...inside.keys(), ...outside.keys()]);
  return [...keys]
    .map((key) => valueField(inside.get(key), outside.get(key), sides))
    .filter((field) => field !== null)
    .toSorted((a, b) => b.difference - a.difference);
}

/** The share of numbers that are no greater than one. */
export function shareBelow(quantiles: Quantiles, number: number): number {
  const last = quantiles.length - 1;
  const at = quantiles.findLastIndex((one) => one <= number);
  if (at < 0) return 0;
  if (at >= last) return 1;
  const [low = 0, high = 0] = [quantiles[at], quantiles[at + 1]];
  return (at + (number - low) / (high - low)) / last;
}

/** The largest distance between two distributions, from 0 for equal ones to 1 for ones that do not overlap. */
export function distanceOf(one: Quantiles, other: Quantiles): number {
  return Math.max(0, ...[...one, ...other].map((number) => Math.abs(shareBelow(one, number) - shareBelow(other, number))));
}

/** The distance of distributions that chance exceeds once in a thousand times, for one row on each side. */
const SURE_DISTANCE = 1.95;

/** The distance up to which chance alone could explain it, of two samples of some sizes. */
const chanceOf = (one: number, other: number): number => (one === 0 || other === 0 ? 1 : SURE_DISTANCE * Math.sqrt(1 / one + 1 / other));

export interface NumbersFound {
  readonly path: readonly Step[];
  readonly count: number;
  readonly quantiles: Quantiles;
}

export function rankedNumbers(inside: readonly NumbersFound[], outside: readonly NumbersFound[]): readonly NumberField[] {
  const others = new Map(outside.map((found) => [keyOf(found.path), found]));
  return inside
    .flatMap((one): readonly NumberField[] => {
      const other = others.get(keyOf(one.path));
      if (other === undefined) return [];
      const difference = distanceOf(one.quantiles, other.quantiles);
      if (difference <= chanceOf(one.count, other.count)) return [];
      return [{ kind: "numbers", path: one.path, inside: one.quantiles, outside: other.quantiles, difference }];
    })
    .toSorted((a, b) => b.difference - a.difference);
}

/** All fields in one order. */
export const ranked = (values: readonly ValueField[], numbers: readonly NumberField[]): readonly ExplainedField[] =>
  [...values, ...numbers].toSorted((a, b) => b.difference - a.difference);
