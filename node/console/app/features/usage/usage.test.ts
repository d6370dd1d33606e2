// Tests the logic of usage, budgets and retention.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readUsage, type Spent } from "../../api/usage";
import { bytesText } from "../../design/bytes";
import { readAddress } from "../../lib/address";
import { changeOf, draftOf, faultsOf, limitOf, readBudget, readBudgetUsage, scopeText, usedText } from "./budget";
import { configOf, cutoffOf, daysOf, freeName, isShort, outdone, readRule, sentenceOf, type Rule } from "./rules";
import { OTHERS, spendingOf, UNNAMED } from "./spending";
import { rateFill, rateName, rateText, shareOf, shareText, sortedProjects } from "./stored";
import { MEASURES, readUsageState, USAGE_SORTS, writeUsageState } from "./url";

test("the address of usage keeps its state", () => {
  const states = fc.record({
    organization: fc.string({ minLength: 1 }),
    range: fc.constantFrom("30d", "7d", "all", "2026-05-04T10:00Z..2026-05-05T10:00Z"),
    sort: fc.constantFrom(...USAGE_SORTS),
    measure: fc.constantFrom(...MEASURES),
  });
  fc.assert(
    fc.property(states, (state) => {
      const written = writeUsageState(state);
      const address = readAddress(written);
      expect(address?.segments).toEqual([state.organization, "settings", "usage"]);
      const read = readUsageState(state.organization, address?.query ?? new URLSearchParams());
      expect(read).toEqual(state);
      expect(writeUsageState(read)).toBe(written);
    }),
  );
});

test("what an address does not say, or says wrongly, is the default", () => {
  const read = readUsageState("acme", new URLSearchParams("t=soon&sort=age"));
  expect(read).toEqual({ organization: "acme", range: "30d", sort: "bytes", measure: "cost" });
  expect(writeUsageState(read)).toBe("/app/acme/settings/usage");
});

const spent = (at: string, model: string | null, cost: number | null, prompt = 1, completion = 1): Spent => ({
  at: Date.parse(at),
  model,
  calls: 1,
  prompt,
  completion,
  cost,
});

const EXTENT = { from: Date.parse("2026-05-01T12:00:00Z"), to: Date.parse("2026-05-04T12:00:00Z") };

test("spending is drawn by day and summed by model", () => {
  const rows = [spent("2026-05-01", "a", 1), spent("2026-05-03", "a", 2, 10), spent("2026-05-03", null, null), spent("2026-05-04", "b", 5)];
  const { xs, cost, tokens, models, total } = spendingOf(rows, EXTENT, 0);
  expect(xs.map((x) => new Date(x).toISOString().slice(0, 10))).toEqual(["2026-05-01", "2026-05-02", "2026-05-03", "2026-05-04"]);
  expect(cost).toEqual([
    { name: "b", values: [0, 0, 0, 5] },
    { name: "a", values: [1, 0, 2, 0] },
  ]);
  expect(tokens.map(({ name }) => name)).toEqual(["a", UNNAMED, "b"]);
  expect(models.map(({ name, calls, cost: dollars }) => [name, calls, dollars])).toEqual([["b", 1, 5], ["a", 2, 3], [UNNAMED, 1, null]]);
  expect(total).toEqual({ name: "All models", calls: 4, prompt: 13, completion: 4, cost: 8 });
});

test("lines of many models have the same sum as their rows", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ model: fc.constantFrom(..."abcdefghijklmn"), cost: fc.integer({ min: 0, max: 100 }) })), (rows) => {
      const { cost } = spendingOf(rows.map((row) => spent("2026-05-02", row.model, row.cost)), EXTENT, 0);
      const drawn = cost.flatMap(({ values }) => values).reduce((sum, value) => sum + value, 0);
      expect(drawn).toBe(rows.reduce((sum, row) => sum + row.cost, 0));
      expect(cost.length).toBeLessThanOrEqual(8);
      expect(cost.findIndex(({ name }) => name === OTHERS)).toBeOneOf([-1, 7]);
    }),
  );
});

test("what is stored is read, sorted and written", () => {
  const usage = readUsage({
    complete: false,
    rows: 3,
    bytes: 1_234_567,
    quota: { rows: 10, bytes: null },
    projects: [{ id: "1", name: "b", rows: 1, bytes: 9 }, { id: "2", name: "a", rows: 2, bytes: 5 }],
    rates: [{ endpoint: "/btql", methods: ["POST"], per: "organization+project", requests: 1200, seconds: 60, burst: 20, left: 5 }],
  });
  expect(usage.isComplete).toBe(false);
  expect(sortedProjects(usage.projects, "bytes").map(({ name }) => name)).toEqual(["b", "a"]);
  expect(sortedProjects(usage.projects, "rows").map(({ name }) => name)).toEqual(["a", "b"]);
  const unmeasured = usage.projects.map((one) => ({ ...one, bytes: 0 }));
  expect(sortedProjects(unmeasured, "bytes").map(({ name }) => name)).toEqual(["a", "b"]);
  expect(sortedProjects(usage.projects, "name").map(({ name }) => name)).toEqual(["a", "b"]);
  const [rate] = usage.rates;
  expect(rate && [rateName(rate), rateText(rate), rateFill(rate)]).toEqual([
    "POST /btql",
    "1,200 per minute for each organization and project, 5 of 20 at once left",
    0.75,
  ]);
  expect(rate && rateFill({ ...rate, left: null })).toBe(0);
  expect([shareOf(1, null), shareOf(1, 0), shareOf(0, 0), shareOf(1, 4)]).toEqual([0, 1, 0, 0.25]);
  expect([shareText(0), shareText(0.001), shareText(0.5)]).toEqual(["0 %", "< 1 %", "50 %"]);
  expect([0, 999, 1000, 999_949, 999_950, 1_234_567, 2e15, null].map(bytesText)).toEqual(["0 B", "999 B", "1.0 KB", "999.9 KB", "1.0 MB", "1.2 MB", "2.0 PB", "-"]);
});

const BUDGET = {
  id: "7",
  scope: { type: "project", id: "p" },
  window: "day",
  limit_usd: 5,
  limit_tokens: null,
  limit_requests: 100,
  limit_concurrent: null,
  action: "reject",
  allow_unpriced: true,
};

test("a budget becomes a draft and the same change again", () => {
  const draft = draftOf(readBudget(BUDGET));
  expect(faultsOf(draft)).toEqual({});
  const { id: _, scope: __, ...rest } = BUDGET;
  expect(changeOf(draft)).toEqual(rest);
});

test("what is used of a budget is said in words", () => {
  const usage = readBudgetUsage({
    exceeded: true,
    window_end: "2026-05-05T00:00:00Z",
    usd: { limit: 5, spent: 1.25, reserved: 0.5, remaining: 3.25 },
    tokens: { limit: null, spent: 7, reserved: 0, remaining: null },
    requests: { limit: 100, spent: 100, reserved: 0, remaining: 0 },
    concurrent: { limit: 3, running: 2 },
  });
  expect(usage.isExceeded).toBe(true);
  expect(usedText("usd", usage.used.usd, 5)).toBe("$1.25 of $5 · $0.5 reserved · $3.25 left");
  expect(usedText("requests", usage.used.requests, 100)).toBe("100 of 100 · 0 left");
  expect(usedText("concurrent", usage.used.concurrent, 3)).toBe("2 of 3 running");
  expect(scopeText({ type: "project", id: "p" }, "demo")).toBe("The project demo");
  expect(scopeText({ type: "user", id: "u" }, null)).toBe("u");
});

test("limits are numbers of their kind", () => {
  expect(["", " 12.50 ", "$1,000", "x", "-1", "1e3"].map((typed) => limitOf("usd", typed))).toEqual([null, 12.5, 1000, undefined, undefined, undefined]);
  expect(["10", "1.5", "9007199254740993"].map((typed) => limitOf("tokens", typed))).toEqual([10, undefined, undefined]);
});

test("the faults of a draft stand at their fields", () => {
  const draft = draftOf(null);
  expect(faultsOf(draft)).toEqual({ usd: "Enter at least one limit." });
  const limits = { ...draft.limits, concurrent: "2" };
  expect(Object.keys(faultsOf({ ...draft, type: "user", limits }))).toEqual(["id"]);
  expect(Object.keys(faultsOf({ ...draft, limits, isStrict: false }))).toEqual(["concurrent"]);
});

const rule = (id: string, project: string | null, days: number): Rule => ({ id, name: id, project, kind: "project_logs", days });

test("rules of retention are read and said in a sentence", () => {
  const config = { event_type: "retention", object_type: "dataset", retention_days: 7.5 };
  const read = readRule({ id: "1", name: "n", project_id: "p", config });
  expect(read).toEqual({ id: "1", name: "n", project: "p", kind: "dataset", days: 7.5 });
  expect(readRule({ id: "1", name: "n", config: { ...config, event_type: "logs" } })).toBeNull();
  expect(sentenceOf({ kind: "project_logs", days: 30 }, "demo")).toBe("Delete logs of demo older than 30 days");
  expect(sentenceOf({ kind: "dataset", days: 1 }, null)).toBe(
    "Delete rows of datasets of all projects without a rule of their own older than 1 day",
  );
});

test("the shortest of several rules counts", () => {
  expect([...outdone([rule("a", "p", 30), rule("b", "p", 7), rule("c", null, 9), rule("d", "q", 30), rule("e", "p", 7)])]).toEqual(["a", "e"]);
});

test("a rule of less than an hour has to be confirmed, and says so to the server", () => {
  expect([0, 1e-12, 0.041, 1 / 24, 0.042, 30].map(isShort)).toEqual([true, true, true, false, false, false]);
  const stored = { event_type: "retention", object_type: "dataset", retention_days: 0 };
  expect(configOf({ kind: "dataset", days: 0 }, true)).toEqual({ ...stored, confirm: true });
  expect(configOf({ kind: "dataset", days: 0 }, false)).toEqual(stored);
});

test("days, the moment before which rows go, and free names", () => {
  expect(["30", " 0.5 ", "0", "", "-1", "x", "99999"].map(daysOf)).toEqual([30, 0.5, 0, null, null, null, null]);
  expect(cutoffOf(1.5, Date.parse("2026-05-04T12:00:00Z"))).toBe("2026-05-03T00:00:00.000Z");
  expect(freeName("dataset", [])).toBe("Retention of datasets");
  expect(freeName("dataset", ["Retention of datasets", "Retention of datasets 2"])).toBe("Retention of datasets 3");
});
