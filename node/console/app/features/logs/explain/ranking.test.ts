// Tests what an explanation ranks first: a planted cause, and nothing that chance explains.
import fc from "fast-check";
import { expect, test } from "vitest";
import { boundOf, numberChip, valueChip } from "./chips";
import { distanceOf, foundOf, rankedNumbers, rankedValues, readRows, shareBelow, type Side } from "./ranking";
import { dividedBy } from "./selection";

/** A generator of the same numbers each time, from 0 to 1. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

type Row = Readonly<Record<string, string>>;

/** An inference over the metadata of rows, as the server gives it: ten values of each field at the most. */
function inferred(rows: readonly Row[]) {
  const fields = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return [
    { name: ["metadata"], type: "object", count: rows.length, top_values: [] },
    ...fields.map((field) => {
      const counts = new Map<string, number>();
      for (const { [field]: value } of rows) if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
      const top = [...counts].map(([value, count]) => ({ value, count })).toSorted((a, b) => b.count - a.count);
      return { name: ["metadata", field], type: "string", count: [...counts.values()].reduce((a, b) => a + b, 0), top_values: top.slice(0, 10) };
    }),
  ];
}

const sideOf = (rows: readonly Row[]): Side => ({ spans: rows.length, traces: rows.length, read: rows.length });

function planted(seed: number) {
  const random = randomOf(seed);
  const pick = (...of: readonly string[]): string => of[Math.floor(random() * of.length)] ?? "";
  const rows = Array.from({ length: 2000 }, () => {
    const [version, region] = [pick("v5", "v6", "v6", "v7"), pick("us", "us", "eu", "ap")];
    const isFailed = random() < (version === "v7" && region === "eu" ? 0.7 : 0.01);
    return { isFailed, row: { version, region, tier: pick("free", "pro"), user: `u${Math.floor(random() * 500)}` } };
  });
  const inside = rows.filter(({ isFailed }) => isFailed).map(({ row }) => row);
  const outside = rows.filter(({ isFailed }) => !isFailed).map(({ row }) => row);
  return { inside, outside, sides: { inside: sideOf(inside), outside: sideOf(outside), isOfTraces: true } };
}

test.each([1, 2, 3, 4, 5])("a planted cause ranks first, and what has nothing to do with it is left out (%d)", (seed) => {
  const { inside, outside, sides } = planted(seed);
  const fields = rankedValues(foundOf(inferred(inside)), foundOf(inferred(outside)), sides);
  expect(fields.slice(0, 2).map(({ path }) => path[1]).toSorted()).toEqual(["region", "version"]);
  expect(fields[0]?.values[0]?.value).toBe(fields[0]?.path[1] === "version" ? "v7" : "eu");
  expect(fields.map(({ path }) => path[1])).not.toContain("user");
});

test("groups that are alike have nothing to show", () => {
  const { outside } = planted(9);
  const found = foundOf(inferred(outside));
  expect(rankedValues(found, found, { inside: sideOf(outside), outside: sideOf(outside), isOfTraces: false })).toEqual([]);
});

test("a field of only one group counts, whichever group it is", () => {
  const one = foundOf(inferred(Array.from({ length: 50 }, () => ({ retry: "yes" }))));
  const side: Side = { spans: 50, traces: 50, read: 50 };
  const sides = { inside: side, outside: side, isOfTraces: true };
  expect(rankedValues(one, new Map(), sides)[0]?.values[0]).toMatchObject({ value: "yes", inside: 1, outside: 0 });
  expect(rankedValues(new Map(), one, sides)[0]?.values[0]).toMatchObject({ value: "yes", inside: 0, outside: 1 });
});

test("the order of the groups does not change the differences", () => {
  const values = fc.array(fc.record({ a: fc.constantFrom("x", "y", "z"), b: fc.constantFrom("1", "2") }), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(values, values, (one, other) => {
      const [first, second] = [foundOf(inferred(one)), foundOf(inferred(other))];
      const there = rankedValues(first, second, { inside: sideOf(one), outside: sideOf(other), isOfTraces: false });
      const back = rankedValues(second, first, { inside: sideOf(other), outside: sideOf(one), isOfTraces: false });
      expect(there.map(({ difference }) => difference)).toEqual(back.map(({ difference }) => difference));
      for (const { difference } of there) expect(difference > 0 && difference <= 1).toBe(true);
    }),
  );
});

const quantiles = fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 11, maxLength: 11 }).map((all) => all.toSorted((a, b) => a - b));

test("the distance of distributions is symmetric, 0 for equal ones, and 1 for ones apart", () => {
  fc.assert(
    fc.property(quantiles, quantiles, (one, other) => {
      expect(distanceOf(one, one)).toBe(0);
      expect(distanceOf(one, other)).toBeCloseTo(distanceOf(other, one));
      expect(distanceOf(one, one.map((number) => number + 1000))).toBe(1);
      for (const number of one) expect(shareBelow(one, number) >= 0 && shareBelow(one, number) <= 1).toBe(true);
    }),
  );
});

test("numbers of few rows are not told apart by chance", () => {
  const at = (count: number, by: number) => [{ path: ["metrics", "duration"], count, quantiles: Array.from({ length: 11 }, (_, rank) => rank + by) }];
  expect(rankedNumbers(at(1000, 5), at(1000, 0))).toHaveLength(1);
  expect(rankedNumbers(at(4, 5), at(1000, 0))).toEqual([]);
});

test("how many rows were read", () => {
  expect(readRows([])).toBe(0);
  expect(readRows([{ name: ["metadata"], type: "null", count: 3 }, { name: ["metadata"], type: "object", count: 4 }, { name: ["metadata", "a"], type: "string", count: 9 }])).toBe(7);
});

test("the conditions of a selection and of the rest", () => {
  expect(dividedBy({ kind: "errors" }, "traces")).toEqual({ inside: "any_span(error IS NOT NULL)", outside: "NOT any_span(error IS NOT NULL)" });
  expect(dividedBy({ kind: "rows", ids: ["a'b"] }, "spans").inside).toBe("id IN ('a''b')");
});

test("what a click filters by", () => {
  expect(valueChip(["metadata", "version"], "v7", "traces", "")).toBe("metadata.version = 'v7'");
  expect(valueChip(["metadata", "version"], "v7", "traces", "error IS NOT NULL")).toBe("any_span(metadata.version = 'v7')");
  expect(valueChip(["tags"], "vip", "spans", "x = 1")).toBe("tags INCLUDES 'vip'");
  const field = { kind: "numbers" as const, path: ["metrics", "duration"], inside: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], outside: [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1], difference: 1 };
  expect(boundOf(field)).toEqual({ sign: ">=", bound: 4 });
  expect(numberChip(field, "traces", "")).toBe("metrics.duration >= 4");
});
