// Tests how numbers and moments are written.
import { describe, expect, test } from "vitest";
import { delta, duration, exactCount, money, score, shortCount } from "./numbers";
import { clock, day, fullMoment, parseMoment, shortMoment, zoneName } from "./time";

describe("numbers", () => {
  test.each([
    [shortCount(0), "0"],
    [shortCount(1234), "1,234"],
    [shortCount(9999), "9,999"],
    [shortCount(12_345), "12.3k"],
    [shortCount(1_250_000), "1.3M"],
    [shortCount(null), "-"],
    [exactCount(12_345), "12,345"],
    [duration(0), "0 ms"],
    [duration(840), "840 ms"],
    [duration(999.6), "1.0 s"],
    [duration(6000), "6.0 s"],
    [duration(59_949), "59.9 s"],
    [duration(59_960), "1 m 0 s"],
    [duration(134_000), "2 m 14 s"],
    [duration(3_600_000), "1 h 0 m"],
    [duration(187_200_000), "2 d 4 h"],
    [duration(-840), "-840 ms"],
    [duration(null), "-"],
    [money(0.0008), "$0.0008"],
    [money(0), "$0"],
    [money(12.345), "$12.3"],
    [money(12_345.6), "$12,346"],
    [money(-0.5), "-$0.5"],
    [score(0.84), "0.84"],
    [score(1), "1.00"],
    [delta(0.03), "+0.03"],
    [delta(-0.01), "-0.01"],
    [delta(-0.001), "0.00"],
    [delta(null), "-"],
  ])("%s is %s", (written, expected) => {
    expect(written).toBe(expected);
  });
});

describe("moments", () => {
  const moment = new Date("2026-05-04T10:04:12.118Z");
  const after = (seconds: number): number => moment.getTime() + seconds * 1000;

  test("the clock and the day are those of the zone", () => {
    expect(clock(moment, "utc")).toBe("10:04:12.118");
    expect(day(moment, "utc")).toBe("2026-05-04");
    expect(zoneName(moment, "utc")).toBe("UTC");
  });

  test.each([
    [3, "just now"],
    [50, "50 s ago"],
    [240, "4 min ago"],
    [3599, "59 min ago"],
    [3600, "10:04:12.118"],
    [86_400, "2026-05-04 10:04"],
    [-5, "10:04:12.118"],
  ])("%s s later it is %s", (seconds, expected) => {
    expect(shortMoment(moment, after(seconds), "utc")).toBe(expected);
  });

  test("what is absent or no moment is a dash", () => {
    expect(shortMoment(null, after(0), "utc")).toBe("-");
    expect(parseMoment(null)).toBeNull();
    expect(parseMoment("yesterday")).toBeNull();
    expect(fullMoment(null)).toBe("");
  });

  test("the tooltip has both zones and ISO", () => {
    expect(fullMoment(moment).split("\n")[1]).toBe("2026-05-04 10:04:12.118 UTC");
    expect(fullMoment(moment).split("\n")[2]).toBe("2026-05-04T10:04:12.118Z");
  });
});
