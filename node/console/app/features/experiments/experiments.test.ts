// Tests the logic of the list of experiments.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readExperiment, type Experiment, type ExperimentFigures } from "../../api/experiments";
import { readAddress } from "../../lib/address";
import { transactionAt } from "../../lib/version";
import { chosenNames } from "./choosing";
import { isRunning, listed, madeBefore, nextSort, scoreNames, sortOf, withEmpty, type Sources } from "./listing";
import { experimentsDefaults, experimentsUrl } from "./url";

const NOW = Date.parse("2026-05-04T12:00:00Z");

const made = (name: string, minutesAgo: number, more: Readonly<Record<string, unknown>> = {}): Experiment =>
  readExperiment({ id: `id-${name}`, name, created: new Date(NOW - minutesAgo * 60_000).toISOString(), ...more });

const figures = (rows: number, mean: number | null, secondsAgo = 0): ExperimentFigures => ({
  rows,
  errors: 0,
  running: 0,
  last: rows === 0 ? null : transactionAt(new Date(NOW - secondsAgo * 1000)),
  duration: rows,
  tokens: null,
  cost: null,
  scores: new Map(mean === null ? [] : [["Exact", { mean, deviation: null, count: rows }]]),
});

const [old, fresh, odd] = [made("a-old", 300), made("b-new", 5), made("c/odd #2", 60, { tags: ["nightly"], metadata: { model: "gpt" } })];

const sources = (more: Partial<Sources> = {}): Sources => ({
  experiments: [fresh, odd, old],
  figures: new Map([[old.id, figures(3, 0.5)], [fresh.id, figures(5, 0.75)], [odd.id, figures(0, null)]]),
  baseline: old.id,
  people: new Map(),
  datasets: new Map(),
  datasetRows: new Map(),
  now: NOW,
  ...more,
});

const namesOf = (filter: string, sort: string): readonly string[] =>
  listed(sources(), filter, sort).map(({ experiment }) => experiment.name);

test("as of a version, experiments that were made later are not listed", () => {
  const one = (name: string, created: string): Experiment => readExperiment({ id: name, name, created });
  const all = [one("before", "2026-05-04T10:00:00Z"), one("later", "2026-05-04T10:00:02Z"), one("undated", "")];
  const version = transactionAt(new Date("2026-05-04T10:00:00Z"));
  expect(madeBefore(all, version).map(({ name }) => name)).toEqual(["before", "undated"]);
  expect(madeBefore(all, "")).toBe(all);
});

test("every state has an address of its own", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 12 });
  const name = text.filter((one) => one !== "");
  fc.assert(
    fc.property(fc.record({ organization: name, project: name, filter: text, sort: text, score: text, version: text, row: text }), (state) => {
      const address = readAddress(experimentsUrl.write(state));
      expect(address === null ? null : experimentsUrl.read(address)).toEqual(state);
    }),
  );
  expect(experimentsUrl.write(experimentsDefaults("acme", "bot"))).toBe("/app/acme/p/bot/experiments");
});

test("the newest come first, and each column sorts with nothing last", () => {
  expect(namesOf("", "")).toEqual(["b-new", "c/odd #2", "a-old"]);
  expect(namesOf("", "name")).toEqual(["a-old", "b-new", "c/odd #2"]);
  expect(namesOf("", "score:Exact")).toEqual(["a-old", "b-new", "c/odd #2"]);
  expect(namesOf("", "-score:Exact")).toEqual(["b-new", "a-old", "c/odd #2"]);
});

test("words are looked for in names, tags and metadata", () => {
  expect(namesOf("nightly gpt", "")).toEqual(["c/odd #2"]);
  expect(namesOf("none", "")).toEqual([]);
});

test("heads turn the direction, and numbers start with the greatest", () => {
  expect(sortOf("")).toEqual({ column: "created", isDescending: true });
  expect([nextSort("", "created"), nextSort("created", "created")]).toEqual(["created", ""]);
  expect([nextSort("", "cost"), nextSort("-cost", "cost"), nextSort("", "name"), nextSort("name", "name")]).toEqual(["-cost", "cost", "name", "-name"]);
});

test("the baseline is compared with, but not with itself", () => {
  const found = listed(sources(), "", "name");
  expect(found.map(({ isBaseline, base }) => [isBaseline, base === null])).toEqual([[true, true], [false, false], [false, false]]);
});

test("an experiment runs while its rows are coming", () => {
  expect(isRunning(fresh, figures(5, 1, 10), NOW)).toBe(true);
  expect(isRunning(fresh, figures(5, 1, 90), NOW)).toBe(false);
  expect(isRunning(old, figures(5, 1, 1), NOW)).toBe(false);
  expect(isRunning(made("x", 1), figures(0, null), NOW)).toBe(true);
  expect(isRunning(fresh, figures(0, null), NOW)).toBe(false);
  expect(isRunning(fresh, null, NOW)).toBe(false);
});

test("the newest of a selection is looked at, and the baseline or the oldest is the base", () => {
  const all = [fresh, odd, old];
  const ids = new Set(all.map(({ id }) => id));
  expect(chosenNames(all, ids, null)).toEqual(["b-new", "a-old", "c/odd #2"]);
  expect(chosenNames(all, ids, odd.id)).toEqual(["b-new", "c/odd #2", "a-old"]);
  expect(chosenNames(all, new Set([old.id]), null)).toEqual(["a-old"]);
  expect(chosenNames(all, new Set([old.id, fresh.id]), fresh.id)).toEqual(["a-old", "b-new"]);
});

test("scores are named by how many experiments have them", () => {
  expect(scoreNames([figures(1, 0.5), figures(1, 1)])).toEqual(["Exact"]);
  expect([...withEmpty(["x"], new Map()).keys()]).toEqual(["x"]);
});
