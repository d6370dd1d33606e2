// Tests ranges: their texts and back, their bounds, and what people type.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  boundsOf,
  frozen,
  inputOfMoment,
  isMoment,
  MAX_AMOUNT,
  momentOfInput,
  PRESETS,
  rangeBetween,
  rangeWords,
  readRange,
  UNITS,
  writeRange,
  type Range,
} from "./range";
import { understoodRange } from "./rangeWords";

const FIRST = Date.parse("0001-01-01T00:00:00Z");
const LAST = Date.parse("9999-12-31T23:59:59.999Z");
const PRESENT = Date.parse("2026-05-04T12:30:00Z");

const moments = fc.integer({ min: FIRST, max: LAST });
const last = fc
  .tuple(fc.integer({ min: 1, max: MAX_AMOUNT }), fc.constantFrom(...UNITS))
  .map(([amount, unit]): Range => ({ kind: "last", amount, unit }));
const between = fc
  .tuple(fc.option(moments), fc.option(moments))
  .filter(([from, to]) => (from ?? to) !== null && (from === null || to === null || from < to))
  .map(([from, to]): Range => ({ kind: "between", from, to }));
const ranges = fc.oneof(last, between, fc.constant<Range>({ kind: "all" }));

test("a range that is written reads back", () => {
  fc.assert(
    fc.property(ranges, (range) => {
      expect(readRange(writeRange(range))).toEqual(range);
    }),
  );
});

test("a text that is read is written as one text", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const range = readRange(text);
      if (range !== null) expect(readRange(writeRange(range))).toEqual(range);
    }),
  );
});

test.each(["15m", "7d", "all", "2026-05-04T10:00Z..2026-05-04T12:00Z", "2026-05-04T10:00:01.250Z..", "..2026-05-04T10:00Z"])(
  "%s stays as it is written",
  (text) => expect(writeRange(readRange(text) ?? { kind: "all" })).toBe(text),
);

test.each(["", "0m", "m", "-1h", "1y", "..", "2026-13-01..", "2026-02-30..", "2026-05-04..2026-05-04", "a..b", "1..2..3", "999999h"])(
  "%j is no range",
  (text) => expect(readRange(text)).toBeNull(),
);

test("moments have a zone, or are in UTC", () => {
  const range = rangeBetween(Date.parse("2026-05-04T00:00Z"), Date.parse("2026-05-04T10:00Z"));
  expect(readRange("2026-05-04..2026-05-04T12:00+02:00")).toEqual(readRange(range));
  expect(readRange("2026-05-04..2026-05-04T10:00")).toEqual(readRange(range));
});

test("bounds lie within what the server knows, in order", () => {
  fc.assert(
    fc.property(ranges, moments, (range, present) => {
      const { from, to } = boundsOf(writeRange(range), present);
      for (const bound of [from, to]) expect(bound === null || isMoment(Date.parse(bound))).toBe(true);
      if (from !== null && to !== null) expect(from < to).toBe(true);
    }),
  );
  expect(boundsOf("15m", PRESENT)).toEqual({ from: "2026-05-04T12:15:00.000Z", to: null });
  expect(boundsOf("all", PRESENT)).toEqual({ from: null, to: null });
});

test("a frozen range has the same start and ends now", () => {
  expect(frozen("1h", PRESENT)).toBe("2026-05-04T11:30Z..2026-05-04T12:30Z");
  expect(frozen("all", PRESENT)).toBe("all");
  expect(frozen("2026-05-04T10:00Z..", PRESENT)).toBe("2026-05-04T10:00Z..");
});

test("a range in words", () => {
  expect(PRESETS.map((preset) => rangeWords(preset, "utc"))).toEqual([
    "Last 15 minutes",
    "Last 1 hour",
    "Last 6 hours",
    "Last 24 hours",
    "Last 7 days",
    "Last 30 days",
    "All time",
  ]);
  expect(rangeWords("2026-05-04T10:00Z..2026-05-04T12:00Z", "utc")).toBe("2026-05-04 10:00 to 12:00");
  expect(rangeWords("2026-05-04T10:00Z..2026-05-05T12:00Z", "utc")).toBe("2026-05-04 10:00 to 2026-05-05 12:00");
});

test.each([
  ["3 days", "3d"],
  ["last 90 minutes", "90m"],
  ["past hour", "1h"],
  ["2 w ago", "2w"],
  ["All time", "all"],
  [" 15m ", "15m"],
  ["today", "2026-05-04T00:00Z..2026-05-05T00:00Z"],
  ["yesterday", "2026-05-03T00:00Z..2026-05-04T00:00Z"],
  ["10:00 to 12:00", "2026-05-04T10:00Z..2026-05-04T12:00Z"],
  ["9:00 - now", "2026-05-04T09:00Z..2026-05-04T12:30Z"],
  ["since yesterday", "2026-05-03T00:00Z.."],
  ["2026-05-01", "2026-05-01T00:00Z..2026-05-02T00:00Z"],
  ["2026-05-01 to 2026-05-02", "2026-05-01T00:00Z..2026-05-03T00:00Z"],
  ["2026-05-01 10:00 to 11:30", "2026-05-01T10:00Z..2026-05-01T11:30Z"],
  ["2026-05-01T10:00 .. 2026-05-02 08:00:30", "2026-05-01T10:00Z..2026-05-02T08:00:30Z"],
])("%j is understood as %s", (typed, range) => {
  expect(understoodRange(typed, PRESENT, "utc")).toBe(range);
});

test.each(["", "soon", "3 months", "25:00 to 26:00", "12:00", "12:00 to 10:00", "now", "to", "2026-05-04 to x"])(
  "%j is not understood",
  (typed) => expect(understoodRange(typed, PRESENT, "utc")).toBeNull(),
);

test("what is understood is always a range", () => {
  fc.assert(
    fc.property(fc.string(), fc.constantFrom("utc", "local"), (typed, zone) => {
      const range = understoodRange(typed, PRESENT, zone);
      if (range !== null) expect(readRange(range)).not.toBeNull();
    }),
  );
});

test("moments go into inputs and back", () => {
  const inYear = fc.integer({ min: Date.parse("1970-01-02T00:00Z"), max: Date.parse("2100-01-01T00:00Z") });
  fc.assert(
    fc.property(inYear, (moment) => {
      expect(momentOfInput(inputOfMoment(moment, "utc"), "utc")).toBe(moment);
    }),
  );
});
