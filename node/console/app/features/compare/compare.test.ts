// Tests the logic of comparisons.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readCompared, type Change, type Pair } from "../../api/comparison";
import { readAddress } from "../../lib/address";
import { requestFault } from "./faults";
import { ApiError } from "../../lib/errors";
import { judged, type Judge } from "./judgements";
import { inCell, markdownOf } from "./markdown";
import { certaintyOf, deltaText, intervalText, measureOf, measuresOf, orderOf, toneOf, valueText } from "./measures";
import { diffPaths, structureOf } from "./paths";
import { exportOf, requestOf } from "./requests";
import { markOf, metadataPaths, pairIdOf, pairIdsOf, pairOfRow, tableRows } from "./rows";
import { noted, redone, undoFrom, undone } from "./undo";
import { compareDefaults, compareUrl, KINDS, LAYOUTS, SORTS, TABS, type CompareState } from "./url";
import { errorLine, lineOf, outcomesOf, spreadOf } from "./values";
import { condensed } from "./words";
import { fileName } from "./exports";

const trial = (id: string, output: unknown, scores: Readonly<Record<string, number>>, error: unknown = null) => ({
  id,
  span_id: id,
  root_span_id: id,
  created: "2026-05-04T10:00:00Z",
  output,
  error,
  scores,
  metrics: { duration: 2 },
  metadata: { lang: "de", "odd key": 1 },
});

const change = (delta: number, pairs: number, interval: readonly [number, number] | null): Change => ({
  pairs,
  up: 1,
  down: 1,
  same: pairs - 2,
  delta,
  interval,
});

const ANSWER = {
  key: "input",
  base: "b",
  experiments: [
    { id: "a", name: "new|prompt", rows: 4, errors: 1, scores: { Exact: { mean: 0.5, count: 4, deviation: 0.1 } }, metrics: { duration: { mean: 2, count: 4, p50: 2, p95: 3 }, tool_calls: { mean: 0, count: 4, p50: 0, p95: 0 } }, distributions: { Exact: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3] } },
    { id: "b", name: "main", rows: 3, errors: 0, scores: { Exact: { mean: 0.75, count: 3, deviation: null } }, metrics: { duration: { mean: 1, count: 3, p50: 1, p95: 1 } }, distributions: {} },
  ],
  comparisons: [
    {
      experiment: "a",
      scores: { Exact: { pairs: 3, up: 1, down: 1, same: 1, delta: -0.25, interval: [-0.5, 0.1] } },
      metrics: { duration: { pairs: 3, up: 3, down: 0, same: 0, delta: 1, interval: null } },
      new: 1,
      missing: 0,
    },
  ],
  groups: [],
  rows: [
    {
      key: "2+2",
      input: "2+2",
      expected: "4",
      cells: [
        { experiment: "a", trials: [trial("a2", "5", { Exact: 0 }), trial("a1", "4", { Exact: 1 })], scores: { Exact: 0.5 }, deltas: { Exact: 0.5 } },
        { experiment: "b", trials: [trial("b1", "5", { Exact: 0 })], scores: { Exact: 0 }, deltas: {} },
      ],
    },
    {
      key: "new",
      input: "new",
      expected: null,
      cells: [
        { experiment: "a", trials: [trial("a3", null, {}, { message: "why" })], scores: {}, deltas: {} },
        { experiment: "b", trials: [], scores: {}, deltas: {} },
      ],
    },
  ],
  total: 2,
  cursor: null,
  truncated: false,
};

const compared = readCompared(ANSWER);
const judge: Judge = (_, measure, one) => judged(measure, one, null);
const [first, second] = compared.rows;
const pairAt = (pair: Pair | undefined): Pair => {
  if (pair === undefined) throw new Error("no pair");
  return pair;
};

const texts = fc.string({ unit: "grapheme", maxLength: 12 });
const names = texts.filter((name) => name !== "");

const states: fc.Arbitrary<CompareState> = fc.record({
  organization: names,
  project: names,
  name: names,
  compared: fc.uniqueArray(names, { maxLength: 7 }),
  isAlone: fc.boolean(),
  layout: fc.constantFrom(...LAYOUTS),
  isDiff: fc.boolean(),
  filter: texts,
  view: texts,
  group: texts,
  only: fc.constantFrom(...KINDS),
  score: texts,
  sort: fc.constantFrom(...SORTS),
  version: texts,
  row: texts,
  span: texts,
  tab: fc.constantFrom(...TABS),
});

test("every state has an address of its own", () => {
  fc.assert(
    fc.property(states, (drawn) => {
      const list = drawn.compared.filter((one) => one !== drawn.name);
      const state = { ...drawn, compared: list, isAlone: drawn.isAlone && list.length === 0 };
      const address = readAddress(compareUrl.write(state));
      expect(address === null ? null : compareUrl.read(address)).toEqual(state);
    }),
  );
});

test("links that SDKs print are understood", () => {
  const address = readAddress("/app/acme/p/bot/experiments/a%2Fb%20%232?c=main&r=x1&s=x2");
  if (address === null) throw new Error("no address");
  expect(compareUrl.read(address)).toEqual({ ...compareDefaults("acme", "bot", "a/b #2"), compared: ["main"], row: "x1", span: "x2" });
  expect(compareUrl.write(compareDefaults("acme", "bot", "x"))).toBe("/app/acme/p/bot/experiments/x");
});

test("measures know their units and which direction is good", () => {
  const [exact, seconds, cost] = [measureOf("Exact"), measureOf("metrics.duration"), measureOf("metrics.estimated_cost")];
  expect([valueText(exact, 0.5), valueText(seconds, 2.25), valueText(cost, 0.0008), valueText(exact, undefined)]).toEqual(["0.50", "2.3 s", "$0.0008", "-"]);
  expect([deltaText(exact, -0.031), deltaText(exact, 0.001), deltaText(seconds, -0.577)]).toEqual(["-0.03", "0.00", "-577 ms"]);
  expect(intervalText(exact, [-0.03, 0.06])).toBe("-0.03 to +0.06");
  expect([toneOf(exact, 0.1), toneOf(seconds, 0.1), toneOf(measureOf("metrics.llm_calls"), 1), toneOf(exact, 0)]).toEqual(["good", "bad", "none", "none"]);
  expect(measuresOf(["b", "a"], ["start", "odd", "duration"]).map(({ name }) => name)).toEqual(["a", "b", "metrics.duration", "metrics.odd"]);
  expect([orderOf(exact, true), orderOf(exact, false), orderOf(seconds, true)]).toEqual(["asc", "desc", "desc"]);
});

test("a change is certain only with enough pairs and changed pairs, and an interval without 0", () => {
  const wide = { ...change(0.2, 20, [0.1, 0.3]), up: 6, down: 0, same: 14 };
  expect(certaintyOf(wide)).toBe("certain");
  expect(certaintyOf({ ...wide, pairs: 19 })).toBe("few");
  expect(certaintyOf({ ...wide, interval: null })).toBe("few");
  expect(certaintyOf({ ...wide, up: 4, down: 1 })).toBe("open");
  expect(certaintyOf({ ...wide, interval: [-0.1, 0.3] })).toBe("open");
  expect(certaintyOf({ ...change(0, 30, [0, 0]), up: 0, down: 0 })).toBe("certain");
});

test("the request says what is compared, and how it is ordered", () => {
  const state = { ...compareDefaults("o", "p", "x"), score: "metrics.duration", only: "up" as const, version: "1000198286849343489" };
  expect(requestOf(state, ["a", "b", "c"])).toMatchObject({ base: "b", only: "up", sort: "delta", order: "desc", version: "1000198286849343489" });
  expect(requestOf({ ...state, score: "", sort: "worst", only: "all" }, ["a"])).toMatchObject({ base: "", only: "", sort: "score", order: "asc" });
  expect(exportOf(requestOf(state, ["a", "b"]), "input")).toMatchObject({ comparison_key: { btql: "input" }, filter: [] });
});

test("trials are unfolded below their pair", () => {
  const [one, two] = [pairAt(first), pairAt(second)];
  expect([pairIdOf(one), pairIdsOf(one)]).toEqual(["a1", ["a1", "a2", "b1"]]);
  expect(tableRows([one, two], new Set()).length).toBe(2);
  const rows = tableRows([one, two], new Set(["a1", "a3"]));
  expect(rows.map(({ trial: number }) => number)).toEqual([null, 0, 1, null]);
  expect(rows.map(({ id }) => pairOfRow(id))).toEqual(["a1", "a1", "a1", "a3"]);
  expect([markOf(one, "b", "Exact"), markOf(two, "b", "Exact"), markOf(one, null, "Exact")]).toEqual(["up", "new", "none"]);
  expect(metadataPaths([one])).toEqual(["metadata.lang", "metadata.`odd key`"]);
});

test("outcomes are counted, and their scores have a spread", () => {
  const cell = pairAt(first).cells[0];
  if (cell === undefined) throw new Error("no cell");
  expect(outcomesOf(cell).map(({ text, count }) => [text, count])).toEqual([["4", 1], ["5", 1]]);
  expect(spreadOf(cell, "Exact")).toBeCloseTo(Math.SQRT1_2);
  expect(spreadOf(cell, "metrics.duration")).toBe(0);
  expect(spreadOf(cell, "None")).toBeNull();
});

test("values are written in one line", () => {
  expect(lineOf({ messages: [{ role: "user", content: "a" }, { role: "user", content: "b\nc" }] })).toBe("b c");
  expect(lineOf({ q: "a long enough text", n: 2 })).toBe("a long enough text, n: 2");
  expect([lineOf({ q: "2+2" }), lineOf({ q: "x", n: 2 }), lineOf([1, 2]), lineOf(null), lineOf("")]).toEqual(["2+2", "q: x, n: 2", "[1,2]", "-", '""']);
  expect([lineOf({}), lineOf(0), errorLine({ message: "late" }), errorLine("x")]).toEqual(["{}", "0", "late", "x"]);
});

test("a Markdown table says what changed, and is safe whatever names are", () => {
  const text = markdownOf(compared, judge, "https://console.invalid/app");
  expect(text).toContain("**new\\|prompt** against **main**: 4 rows against 3, 1 new, 0 missing, errors 1 against 0.");
  expect(text).toContain("| Exact | 0.75 | 0.50 | -0.25 | -0.50 to +0.10 (few rows) | 1 / 1 / 1 |");
  expect(text).not.toContain("Tool calls");
  const alone = markdownOf({ ...compared, base: null, comparisons: [] }, judge, "https://console.invalid/app");
  expect(alone).toContain("| Exact | 0.50 | 4 |");
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (name) => {
      const cell = inCell(name);
      expect(cell).not.toMatch(/[\n\r]|(?<!\\)(?:\\\\)*[|<`]/);
    }),
  );
});

test("differences of JSON are found by path", () => {
  expect(diffPaths({ a: 1, b: [1, 2], c: 0 }, { a: 2, b: [1, 3, 4], "d e": null })).toEqual([
    { path: "a", kind: "changed", before: 1, after: 2 },
    { path: "b[1]", kind: "changed", before: 2, after: 3 },
    { path: "b[2]", kind: "added", before: undefined, after: 4 },
    { path: "c", kind: "removed", before: 0, after: undefined },
    { path: '"d e"', kind: "added", before: undefined, after: null },
  ]);
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(diffPaths(value, structuredClone(value))).toEqual([]);
    }),
  );
  expect([structureOf('{"a":1}'), structureOf("[1"), structureOf(3)]).toEqual([{ a: 1 }, null, null]);
});

test("long equal parts are cut beside changes", () => {
  const parts = condensed([{ kind: "same", text: "x".repeat(90) }, { kind: "added", text: "new" }]);
  expect(parts).toEqual([{ kind: "same", text: `…${"x".repeat(24)}` }, { kind: "added", text: "new" }]);
});

test("filters are taken back and done again", () => {
  const start = undoFrom({ filter: "", group: "", only: "all", score: "", sort: "worst" });
  const next = noted(start, { ...start.present, only: "down" });
  expect(undone(next).present.only).toBe("all");
  expect(redone(undone(next)).present.only).toBe("down");
  expect(noted(next, { ...next.present })).toBe(next);
});

test("faults are said where they are", () => {
  const error = (message: string): ApiError => new ApiError(400, "BadRequestError", message, null, null);
  const filter = error("filter.btql: line 1, column 17: expected an expression");
  expect(requestFault(filter, "a =", "")).toEqual({ at: "filter", message: "At column 17: expected an expression" });
  const group = error("select[5].expr.btql: line 1, column 10: expected a name");
  expect(requestFault(group, "", "metadata.")).toEqual({ at: "group", message: "At column 10: expected a name" });
  expect(requestFault(new Error("x"), "a", "")).toBeNull();
});

test("files have plain names", () => {
  expect(fileName(["cheap model/nano #2", "main"])).toBe("cheap-model-nano-2-main");
  expect(fileName(["//"])).toBe("experiments");
});
