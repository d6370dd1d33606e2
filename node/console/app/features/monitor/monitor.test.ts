// Tests the monitor: its address, the arrangement of cards, its lines, where points lead, and its records.
import fc from "fast-check";
import { expect, test } from "vitest";
import { inTurn } from "../../api/monitor";
import { bucketsOf, bucketStart, widthFor } from "../../lib/buckets";
import { readAddress } from "../../lib/address";
import { allCards, cardKey, movedCard, readCards, UNITS, writeCards, type Card } from "./cards";
import { bodyOf, dashboardOf } from "./dashboards";
import { linesRequest } from "./queries";
import { drawnOf, isNothing, lineNames, shownLines, totalOf, unitText } from "./series";
import { bucketRange, listTarget, targetOf } from "./targets";
import { BUILT_IN, monitorDefaults, monitorUrl, overridden, REFRESHES, settingsOf, SHAPES, type MonitorState, type Settings } from "./url";

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const name = text.filter((value) => value !== "" && value !== "." && value !== "..");

const card: fc.Arbitrary<Card> = fc.oneof(
  fc.constantFrom(...allCards([])),
  fc.record({ kind: fc.constant("score" as const), score: name }),
  fc.record({ kind: fc.constant("own" as const), name, measure: name, unit: fc.constantFrom(...UNITS) }),
);
const cards = fc.uniqueArray(card, { maxLength: 12, selector: cardKey });

const settings: fc.Arbitrary<Settings> = fc.record({
  range: fc.constantFrom("24h", "7d", "all", "2026-05-04T10:00Z..2026-05-04T12:00Z"),
  group: text,
  filter: text,
  shape: fc.constantFrom(...SHAPES),
  cards: fc.option(cards, { nil: null }).map(writeCards),
});

const state: fc.Arbitrary<MonitorState> = fc
  .record({ organization: name, project: name, view: fc.oneof(fc.constant(""), name), settings, refresh: fc.constantFrom(...REFRESHES), version: text })
  .map(({ settings: shown, ...rest }) => ({ ...rest, overrides: overridden(BUILT_IN, shown) }));

test("an address means the monitor that it was written for", () => {
  fc.assert(
    fc.property(state, (one) => {
      const address = readAddress(monitorUrl.write(one));
      expect(address === null ? null : monitorUrl.read(address)).toEqual(one);
    }),
  );
});

test("what equals the dashboard is not written, and an emptied filter is", () => {
  expect(monitorUrl.write(monitorDefaults("acme", "bot"))).toBe("/app/acme/p/bot/monitor");
  const base: Settings = { ...BUILT_IN, filter: "a = 1", range: "7d" };
  const overrides = overridden(base, { ...base, filter: "" });
  expect(monitorUrl.write({ ...monitorDefaults("acme", "bot"), view: "v1", overrides })).toBe("/app/acme/p/bot/monitor/v1?q=");
  expect(settingsOf(base, overrides)).toEqual({ ...base, filter: "" });
});

test("an arrangement is read as it was written", () => {
  fc.assert(
    fc.property(cards, (list) => {
      expect(readCards(writeCards(list))).toEqual(list);
    }),
  );
  expect(readCards("")).toBeNull();
  expect(readCards("{")).toBeNull();
  expect(readCards('["traces","later",["a","b","furlongs"]]')).toEqual([{ kind: "fixed", id: "traces" }]);
});

test("a moved card keeps all others in their order", () => {
  fc.assert(
    fc.property(cards, fc.nat(12), fc.integer({ min: -3, max: 15 }), (list, from, to) => {
      const moved = movedCard(list, from, to);
      expect(moved.map(cardKey).toSorted()).toEqual(list.map(cardKey).toSorted());
      expect(moved.filter((one) => one !== list[from])).toEqual(list.filter((one) => one !== list[from]));
    }),
  );
});

test("buckets cover their extent", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: 1000, max: 3e11 }), fc.constantFrom(0, -120, 210), (from, size, offset) => {
      const extent = { from, to: from + size };
      const width = widthFor(extent, 72);
      const starts = bucketsOf(extent, width, offset, 73);
      expect(starts.length).toBeLessThanOrEqual(73);
      expect(starts[0]).toBe(bucketStart(from, width, offset));
      expect((starts.at(-1) ?? 0) + width.milliseconds).toBeGreaterThanOrEqual(extent.to);
    }),
  );
});

const FROM = Date.parse("2026-05-04T10:00:00Z");
const HOUR = 3_600_000;
const xs = [FROM, FROM + HOUR];
const plain = { xs, extent: { from: FROM, to: FROM + 2 * HOUR }, bucketMs: HOUR, measures: ["traces"], groups: null, isSum: true };

test("rows become lines, and what no bucket has counts as nothing", () => {
  const drawn = drawnOf([{ t: "2026-05-04T11:00:00Z", y0: 3 }, { t: "2026-05-04T13:00:00Z", y0: 9 }], plain);
  const lines = shownLines(drawn, false, 0);
  expect(lines).toEqual([{ name: "traces", values: [0, 3] }]);
  expect(totalOf(lines)).toBe(3);
  expect(isNothing(lines, true)).toBe(false);
  const gaps = drawnOf([{ t: "2026-05-04T11:00:00Z", y0: null }], { ...plain, isSum: false });
  expect(shownLines(gaps, false, 0)).toEqual([{ name: "traces", values: [null, null] }]);
});

test("grouped rows have a line for each value and one for all others", () => {
  const groups = { values: ["v1", 1, "1"], hasOther: true };
  expect(lineNames(groups)).toEqual(["v1", "1", '"1"', "other"]);
  const rows = [{ t: "2026-05-04T10:00:00Z", k: 0, y0: 2 }, { t: "2026-05-04T10:00:00Z", k: 3, y0: 5 }];
  const lines = shownLines(drawnOf(rows, { ...plain, groups }), true, 0);
  expect(lines.map(({ values }) => values)).toEqual([[2, 0], [0, 0], [0, 0], [5, 0]]);
});

test("values in their units", () => {
  expect([unitText(1.5, "seconds"), unitText(0.5, "percent"), unitText(0.0008, "dollars"), unitText(12345, "number"), unitText(null, "number")]).toEqual([
    "1.5 s", "50 %", "$0.0008", "12,345", "-",
  ]);
});

const errors: Card = { kind: "fixed", id: "errors" };
const shown = { shape: "traces" as const, filter: "", group: "metadata.version", groups: { values: ["v7", "it's"], hasOther: true } };

test("a point leads to the logs of its bucket and its line", () => {
  expect(targetOf(errors, shown, "1h", "it's")).toEqual({
    shape: "traces",
    range: "1h",
    filter: "any_span(error IS NOT NULL) AND any_span(is_root AND metadata.version = 'it''s')",
  });
  expect(targetOf(errors, { ...shown, shape: "spans", filter: "a = 1 or b = 2" }, "1h", "other").filter).toBe(
    "(a = 1 or b = 2) AND error IS NOT NULL AND metadata.version IS NOT NULL AND metadata.version != 'v7' AND metadata.version != 'it''s'",
  );
  expect(targetOf({ kind: "score", score: "My score" }, { ...shown, groups: null, group: "" }, "1h", null).filter).toBe("any_span(scores.`My score` IS NOT NULL)");
  expect(listTarget({ ...shown, shape: "spans" }, "1h", { code: 4 }, "error").filter).toBe("error IS NOT NULL");
});

test("a range of buckets stays within what is drawn", () => {
  const drawn = { xs, bucketMs: HOUR, extent: { from: FROM + 60_000, to: FROM + 2 * HOUR }, measures: [] };
  expect(bucketRange(drawn, FROM, FROM)).toBe("2026-05-04T10:01Z..2026-05-04T11:00Z");
  expect(bucketRange(drawn, FROM + 1000, FROM + 2 * HOUR)).toBe("2026-05-04T10:01Z..2026-05-04T12:00Z");
});

test("a record keeps the settings, and what others have put into it", () => {
  fc.assert(
    fc.property(settings, (one) => {
      const body = bodyOf({ ...one, filter: one.filter.trim() }, null);
      const options = body.options["options"];
      const read = dashboardOf({ id: "v", name: "n", data: body.view_data, options: typeof options === "object" ? { ...options } : {} });
      expect(read.settings).toEqual({ ...one, filter: one.filter.trim() });
    }),
  );
  const before = dashboardOf({ id: "v", name: "n", data: { custom_charts: { theirs: 1 } }, options: { tzUTC: true } });
  const body = bodyOf(BUILT_IN, before);
  expect(body.view_data["custom_charts"]).toMatchObject({ theirs: 1 });
  expect(body.options["options"]).toMatchObject({ tzUTC: true, rangeValue: "24h" });
});

test("a grouped card asks for the number of the line, and only for rows with a value", () => {
  const scope = { organization: "o", projectId: "p", shape: "spans" as const, bounds: { from: null, to: null }, filter: "", group: "metadata.version", version: "" };
  const query = linesRequest(errors, { scope, extent: plain.extent, tzOffset: 0, groups: { values: ["v7"], hasOther: false } });
  expect(query.dimensions?.map(({ alias }) => alias)).toEqual(["t", "k"]);
  expect(query.filter).toHaveLength(1);
});

test("no more than four run at once, and one that is given up leaves the line", async () => {
  const release: (() => void)[] = [];
  let most = 0;
  let running = 0;
  const work = (signal: AbortSignal) =>
    inTurn(signal, async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => release.push(resolve));
      running -= 1;
    });
  const given = new AbortController();
  const all = Array.from({ length: 6 }, () => work(new AbortController().signal));
  const leaving = work(given.signal);
  given.abort();
  await expect(leaving).rejects.toThrow("given up");
  for (let step = 0; step < 20; step += 1) {
    release.shift()?.();
    await Promise.resolve();
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  await Promise.all(all);
  expect(most).toBe(4);
});
