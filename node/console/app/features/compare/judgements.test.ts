// Tests the words and the colours of changes.
import { expect, test } from "vitest";
import type { Change } from "../../api/comparison";
import { statisticsIn, type MeasureStatistics } from "../../api/statistics";
import { changeTitle, hintOf, judged } from "./judgements";
import { measureOf } from "./measures";

const CHANGE: Change = { pairs: 40, up: 20, down: 4, same: 16, delta: 0.3, interval: [0.1, 0.5] };

/** Statistics as the server sends them, of a score and of metrics. */
const answer = (name: string, verdict: string, settle: unknown = "settled") => ({
  name,
  rows: 40,
  mean: 0.5,
  incomplete: 2,
  change: { rows: 40, difference: 0.3, interval: [-0.1, 0.7], verdict, rows_to_settle: settle },
  disagreeing: 3,
  disagreements: [{ key: "2+2", trials: 3, low: 0, high: 1 }],
});

function statisticsOf(name: string, verdict: string, settle?: unknown): MeasureStatistics {
  const read = statisticsIn({ scores: [answer(name, verdict, settle)], metrics: [] })?.get(name);
  if (read === undefined) throw new Error("no statistics");
  return read;
}

const said = (name: string, verdict: string) => {
  const { tone, word } = judged(measureOf(name), CHANGE, statisticsOf(name, verdict));
  return [word, tone];
};

test("statistics are read by name", () => {
  const read = statisticsIn({ scores: [answer("Exact", "up")], metrics: [{ ...answer("metrics.duration", "down"), change: null }] });
  expect([...(read?.keys() ?? [])]).toEqual(["Exact", "metrics.duration"]);
  expect(read?.get("Exact")).toEqual({
    change: { interval: [-0.1, 0.7], verdict: "up", rowsToSettle: null },
    incomplete: 2,
    disagreeing: 3,
    disagreements: [{ key: "2+2", trials: 3, low: 0, high: 1 }],
  });
  expect(read?.get("metrics.duration")?.change).toBeNull();
  expect(statisticsIn(null)).toBeNull();
  expect(() => statisticsIn(undefined)).toThrow();
});

test("an undecided difference has no colour, however large it is", () => {
  for (const name of ["Exact", "metrics.duration", "metrics.llm_calls"]) expect(said(name, "undecided")).toEqual(["undecided", "none"]);
  expect(said("Exact", "a verdict of a later version")).toEqual(["undecided", "none"]);
});

test("a verdict is good or bad by the better direction of its measure", () => {
  expect([said("Exact", "up"), said("Exact", "down")]).toEqual([["better", "good"], ["worse", "bad"]]);
  for (const name of ["duration", "total_tokens", "estimated_cost", "errors"]) {
    expect([said(`metrics.${name}`, "up"), said(`metrics.${name}`, "down")]).toEqual([["worse", "bad"], ["better", "good"]]);
  }
  expect([said("metrics.own", "up"), said("metrics.own", "down")]).toEqual([["higher", "none"], ["lower", "none"]]);
});

test("the interval of the statistics replaces the one of the pairs, and nothing is said while it is read", () => {
  const exact = measureOf("Exact");
  expect(judged(exact, CHANGE, statisticsOf("Exact", "undecided")).interval).toEqual([-0.1, 0.7]);
  expect(judged(exact, CHANGE, "reading")).toMatchObject({ interval: [0.1, 0.5], tone: "none", word: "", hint: "" });
});

test("without statistics, the pairs alone are judged", () => {
  const [exact, seconds] = [measureOf("Exact"), measureOf("metrics.duration")];
  const alone = (measure: typeof exact, change: Change) => {
    const { word, tone } = judged(measure, change, null);
    return [word, tone];
  };
  expect([alone(exact, CHANGE), alone(seconds, CHANGE)]).toEqual([["better", "good"], ["worse", "bad"]]);
  expect(alone(exact, { ...CHANGE, interval: [-0.1, 0.7] })).toEqual(["undecided", "none"]);
  expect(alone(exact, { ...CHANGE, pairs: 19 })).toEqual(["few rows", "none"]);
  expect(alone(exact, { ...CHANGE, up: 0, down: 0, delta: 0, interval: [0, 0] })).toEqual(["unchanged", "none"]);
  expect(judged(exact, null, null).word).toBe("");
});

test("the rows that would settle a change are said where their number is known", () => {
  const rows = (settle: unknown) => hintOf(statisticsOf("Exact", "undecided", settle).change?.rowsToSettle ?? null);
  expect([rows({ about: 1 }), rows({ about: 1234 })]).toEqual(["about 1 more row would settle it", "about 1,234 more rows would settle it"]);
  expect(rows("too_many")).toBe("more than 100,000 more rows would settle it");
  expect(rows("not_by_more_rows")).toBe("more rows would not settle it");
  expect([rows("settled"), rows("later")]).toEqual(["", ""]);
});

test("a tooltip says the change in a sentence", () => {
  const exact = measureOf("Exact");
  const judgement = judged(exact, CHANGE, statisticsOf("Exact", "undecided", { about: 30 }));
  expect(changeTitle(exact, CHANGE, judgement)).toBe(
    "+0.30 over 40 pairs, 95 % interval -0.10 to +0.70: undecided, about 30 more rows would settle it.",
  );
});
