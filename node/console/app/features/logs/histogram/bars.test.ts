// Tests the bars of the histogram: their widths, their starts, and the ticks below them.
import fc from "fast-check";
import { expect, test } from "vitest";
import { bucketStart, unitOf } from "../../../lib/buckets";
import { barsOf, barWidth, clipped, extentWords, spanned, ticksOf } from "./bars";

const HOUR = 3_600_000;
const FROM = Date.parse("2026-05-04T10:00:00Z");

const extents = fc
  .tuple(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: 1000, max: 3e11 }))
  .map(([from, size]) => ({ from, to: from + size }));
const offsets = fc.constantFrom(0, -120, 480, -330, 210);

test.each([
  [0.25, "10 seconds"],
  [1, "minute"],
  [6, "5 minutes"],
  [24, "15 minutes"],
  [168, "2 hours"],
  [720, "12 hours"],
])("%d hours have bars of %s", (hours, unit) => {
  const extent = { from: FROM, to: FROM + hours * HOUR };
  expect(unitOf(barWidth(extent))).toBe(unit);
  const count = barsOf([], extent, barWidth(extent), 0).length;
  expect(count).toBeGreaterThanOrEqual(60);
  expect(count).toBeLessThanOrEqual(120);
});

test("bars cover the extent without gaps, and are no more than 121", () => {
  fc.assert(
    fc.property(extents, offsets, (extent, offset) => {
      const bars = barsOf([], extent, barWidth(extent), offset);
      expect(bars.length).toBeLessThanOrEqual(121);
      expect(bars[0]?.start).toBeLessThanOrEqual(extent.from);
      expect(bars.at(-1)?.end).toBeGreaterThanOrEqual(extent.to);
      for (const [index, bar] of bars.entries()) if (index > 0) expect(bar.start).toBe(bars[index - 1]?.end);
    }),
  );
});

test("bars start at local midnight", () => {
  const day = { amount: 1, unit: "day", milliseconds: 24 * HOUR } as const;
  expect(new Date(bucketStart(FROM, day, 480)).toISOString()).toBe("2026-05-04T08:00:00.000Z");
  expect(new Date(bucketStart(FROM, day, -120)).toISOString()).toBe("2026-05-03T22:00:00.000Z");
});

test("rows of the server find their bars", () => {
  const extent = { from: FROM, to: FROM + HOUR };
  const rows = [{ t: "2026-05-04T10:05:00Z", n: 3, errors: 1 }, { t: "2026-05-04T09:00:00Z", n: 9, errors: 9 }, { t: null, n: 1, errors: 0 }];
  const bars = barsOf(rows, extent, barWidth(extent), 0).filter((bar) => bar.count > 0);
  expect(bars).toEqual([{ start: FROM + 5 * 60_000, end: FROM + 6 * 60_000, count: 3, errors: 1 }]);
});

test("a choice of bars stays within the extent, in either direction", () => {
  const extent = { from: FROM + 90_000, to: FROM + HOUR };
  const bars = barsOf([], extent, barWidth(extent), 0);
  expect(spanned(bars, 2, 0, extent)).toEqual(spanned(bars, 0, 2, extent));
  expect(spanned(bars, 0, 0, extent)?.from).toBe(extent.from);
  expect(spanned(bars, 0, 999, extent)).toBeNull();
  expect(clipped({ start: 0, end: FROM + 2 * HOUR }, extent)).toEqual(extent);
});

test("ticks lie within the extent, and are not more than asked for", () => {
  fc.assert(
    fc.property(extents, offsets, fc.integer({ min: 2, max: 12 }), (extent, offset, most) => {
      const ticks = ticksOf(extent, most, "utc", offset);
      expect(ticks.length).toBeLessThanOrEqual(most + 1);
      for (const { at } of ticks) expect(at >= extent.from && at < extent.to).toBe(true);
    }),
  );
  expect(ticksOf({ from: FROM, to: FROM + 6 * HOUR }, 6, "utc", 0).map((tick) => tick.label)).toEqual(["10:00", "11:00", "12:00", "13:00", "14:00", "15:00"]);
});

test("an extent in words", () => {
  expect(extentWords({ from: FROM, to: FROM + HOUR }, "utc")).toBe("2026-05-04 10:00 to 11:00");
  expect(extentWords({ from: FROM, to: FROM + 24 * HOUR + 5000 }, "utc")).toBe("2026-05-04 10:00 to 2026-05-05 10:00:05");
});
