// Tests the address of the query editor, its desk, versions, axes of charts, and copied code.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readAddress } from "../../lib/address";
import { axesOf, barsOf, chosenAxes, linesOf, readAxes, writeAxes, type ChartAxes } from "./chart";
import { commandOf, curlOf, inOneLine, pythonOf, seenJson } from "./copies";
import { fileName } from "./exports";
import { hasOwnCursor, ownLimit, saidOf } from "./said";
import {
  arrived,
  changed,
  closed,
  currentTab,
  EMPTY_PART,
  HISTORY_LENGTH,
  KEPT_LENGTH,
  linked,
  newDesk,
  opened,
  readDesk,
  recorded,
  shown,
  tabTitle,
  writeDesk,
  type Desk,
  type QueryPart,
} from "./tabs";
import { queryDefaults, queryUrl, RESULT_TABS, SYNTAXES, type QueryState } from "./url";
import { momentOf, readVersion, sentVersion, transactionAt } from "../../lib/version";

const words = fc.string({ unit: "grapheme", maxLength: 40 });

const states: fc.Arbitrary<QueryState> = fc.record({
  organization: words.filter((text) => text !== "" && text !== "." && text !== ".."),
  text: words,
  view: words,
  syntax: fc.constantFrom(...SYNTAXES),
  chart: words,
  version: words,
  tab: fc.constantFrom(...RESULT_TABS),
});

test("an address says all of a query's state", () => {
  fc.assert(
    fc.property(states, (state) => {
      const address = readAddress(queryUrl.write(state));
      expect(address === null ? null : queryUrl.read(address)).toEqual(state);
    }),
  );
});

test("defaults are not written", () => {
  const state = queryDefaults("acme");
  expect(queryUrl.write(state)).toBe("/app/acme/query");
  expect(queryUrl.write({ ...state, text: "select: id", tab: "chart" })).toBe("/app/acme/query?q=select%3A%20id&tab=chart");
});

const part = (text: string): QueryPart => ({ ...EMPTY_PART, text });
const texts = (desk: Desk): readonly string[] => desk.tabs.map((tab) => tab.text);

test("tabs are opened beside the shown one, and an empty one is used instead", () => {
  const one = opened(newDesk(), part("a"));
  expect(texts(one)).toEqual(["a"]);
  const two = opened(one, part("b"));
  const three = opened(shown(two, 1), part("c"));
  expect(texts(three)).toEqual(["a", "c", "b"]);
  expect(currentTab(three).text).toBe("c");
});

test("closing shows the neighbour, and the last tab becomes empty", () => {
  const desk = opened(opened(newDesk(part("a")), part("b")), part("c"));
  expect(currentTab(closed(desk, desk.current)).text).toBe("b");
  expect(currentTab(closed(desk, 1)).text).toBe("c");
  const last = closed(newDesk(part("a")), 1);
  expect(texts(last)).toEqual([""]);
});

test("the history has no text twice, and a limit", () => {
  let desk = newDesk();
  for (let index = 0; index < HISTORY_LENGTH + 5; index += 1) desk = recorded(desk, `q${index}`);
  expect(desk.history).toHaveLength(HISTORY_LENGTH);
  expect(recorded(desk, "q100").history.at(-1)).toBe("q100");
  expect(recorded(desk, "q100").history.filter((text) => text === "q100")).toHaveLength(1);
  expect(recorded(newDesk(), "x".repeat(KEPT_LENGTH + 1)).history).toEqual([]);
});

test("a desk is read as it was written", () => {
  const tabs = fc.array(fc.record({ text: words, chart: words }), { maxLength: 6 });
  fc.assert(
    fc.property(tabs, fc.array(words, { maxLength: 5 }), (parts, history) => {
      const start: Desk = { ...newDesk(), history };
      const desk = parts.reduce((all, one) => opened(all, { ...EMPTY_PART, ...one }), start);
      const read = readDesk(writeDesk(desk));
      expect(read === null ? null : texts(read)).toEqual(texts(desk));
      expect(read?.history).toEqual(history);
      expect(read === null ? null : currentTab(read).text).toBe(currentTab(desk).text);
    }),
  );
});

test.each([null, "", "x", "[]", "7", '{"tabs":7}'])("what is stored as %j harms nothing", (stored) => {
  const desk = readDesk(stored);
  if (desk !== null) expect(desk.tabs).toHaveLength(1);
});

test("an address finds its tab, and one without a query leaves the desk", () => {
  const desk = opened(newDesk(part("a")), part("b"));
  expect(currentTab(arrived(desk, { ...part("a"), tab: "chart" }))).toMatchObject({ id: 1, tab: "chart" });
  expect(texts(arrived(desk, part("c")))).toEqual(["a", "b", "c"]);
  expect(arrived(desk, part(""))).toBe(desk);
  expect(texts(arrived(null, part("c")))).toEqual(["c"]);
});

test("the record of a long query belongs to its text", () => {
  const desk = linked(newDesk(part("a")), 1, "a", "V1");
  expect(currentTab(desk).link).toBe("V1");
  expect(currentTab(changed(desk, { tab: "json" })).link).toBe("V1");
  expect(currentTab(changed(desk, { text: "b" })).link).toBe("");
  expect(currentTab(linked(newDesk(part("b")), 1, "a", "V1")).link).toBe("");
  const other = opened(desk, part("b"));
  expect(currentTab(arrived(other, { ...part(""), link: "V1" })).text).toBe("a");
  expect(arrived(other, { ...part(""), link: "V2" })).toBe(other);
});

test("a tab is called by its name or by the start of its text", () => {
  expect(tabTitle({ ...part("-- note\nselect: id"), id: 1 })).toBe("select: id");
  expect(tabTitle({ ...part("x"), name: "Costs", id: 1 })).toBe("Costs");
  expect(tabTitle(currentTab(changed(newDesk(), { text: " " })))).toBe("New query");
});

test("a transaction id has its moment, and a moment its last transaction", () => {
  const moment = new Date("2026-05-04T10:00:00Z");
  const id = transactionAt(moment);
  expect(momentOf(id)).toEqual(moment);
  expect(momentOf("1000198286713618435")?.toISOString().slice(0, 10)).toBe("2026-11-28");
  expect(momentOf(BigInt(id).toString(16).padStart(16, "0"))).toEqual(moment);
  expect(momentOf("12345678901234567")).toBeNull();
});

test.each([
  ["", "now", ""],
  ["1000198286713618435", "transaction", "1000198286713618435"],
  ["0de15c3a2b1f0003", "transaction", "0de15c3a2b1f0003"],
  ["2026-05-04", "moment", transactionAt(new Date("2026-05-04"))],
  ["2026-05-04T10:00Z", "moment", transactionAt(new Date("2026-05-04T10:00Z"))],
  ["yesterday", "unknown", "yesterday"],
])("the version %j is of the kind %s", (text, kind, sent) => {
  expect(readVersion(text).kind).toBe(kind);
  expect(sentVersion(readVersion(text))).toBe(sent);
});

test("axes are read as they were written", () => {
  const names = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
  const axes: fc.Arbitrary<ChartAxes> = fc.record({
    kind: fc.constantFrom("line", "bars"),
    x: names,
    by: fc.string({ unit: "grapheme", maxLength: 12 }),
    y: fc.array(names, { minLength: 1, maxLength: 4 }),
  });
  fc.assert(
    fc.property(axes, (one) => {
      expect(readAxes(writeAxes(one))).toEqual(one);
    }),
  );
  expect(readAxes("pie,a,b,c")).toBeNull();
  expect(readAxes("line,a,,")).toEqual({ kind: "line", x: "a", by: "", y: [""] });
});

test("axes fit the columns", () => {
  const hour = { name: "hour", kind: "moment" } as const;
  const model = { name: "model", kind: "text" } as const;
  const [n, cost] = [{ name: "n", kind: "number" } as const, { name: "cost", kind: "number" } as const];
  expect(axesOf([hour, n, cost])).toEqual({ kind: "line", x: "hour", by: "", y: ["n", "cost"] });
  expect(axesOf([hour, model, n, cost])).toEqual({ kind: "line", x: "hour", by: "model", y: ["n"] });
  expect(axesOf([model, n, cost])).toEqual({ kind: "bars", x: "model", by: "", y: ["n"] });
  expect(axesOf([n])).toBeNull();
  expect(axesOf([model])).toBeNull();
  expect(chosenAxes("bars,model,,cost", [model, n, cost])?.y).toEqual(["cost"]);
  expect(chosenAxes("bars,gone,,cost", [model, n, cost])?.y).toEqual(["n"]);
});

test("lines have a value or a gap at each place, in order", () => {
  const rows = [
    { t: "2026-01-01T01:00:00Z", m: "b", n: 2 },
    { t: "2026-01-01T00:00:00Z", m: "a", n: 1 },
    { t: null, m: "a", n: 9 },
    { t: "2026-01-01T01:00:00Z", m: null, n: null },
  ];
  const { xs, lines } = linesOf(rows, { kind: "line", x: "t", by: "m", y: ["n"] });
  expect(xs).toEqual([Date.parse("2026-01-01T00:00:00Z"), Date.parse("2026-01-01T01:00:00Z")]);
  expect(lines).toEqual([
    { name: "b", values: [null, 2] },
    { name: "a", values: [1, null] },
    { name: "null", values: [null, null] },
  ]);
});

test("bars keep the order of the rows", () => {
  const rows = [{ m: "x", n: -4 }, { m: "", n: 2 }];
  expect(barsOf(rows, { kind: "bars", x: "m", by: "", y: ["n"] })).toEqual({
    bars: [
      { name: "x", value: -4 },
      { name: '""', value: 2 },
    ],
    total: 2,
    most: 4,
  });
});

const COPIED = { origin: "http://node.test:8000", organization: "acme", query: "select: id\n-- all\nfrom: dataset('it''s')", version: "" };

test("copied JSON has nothing unseen and means the same", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const written = seenJson(text);
      expect(JSON.parse(written)).toBe(text);
      expect(written).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    }),
  );
});

test("copied code has the query, and the key as a variable", () => {
  const curl = curlOf({ ...COPIED, version: "7" });
  expect(curl).toContain('-H "Authorization: Bearer $BRAINTRUST_API_KEY"');
  expect(curl).toContain("'\\''");
  expect(curl).toContain('"version":"7"');
  expect(pythonOf(COPIED)).toContain('os.environ["BRAINTRUST_API_KEY"]');
  expect(pythonOf(COPIED)).toContain('"query": "select: id\\n-- all\\nfrom: dataset(\'it\'\'s\')"');
  expect(commandOf(COPIED)).toBe(
    "BRAINTRUST_API_URL=http://node.test:8000 BRAINTRUST_ORG_NAME=acme bt sql 'select: id from: dataset('\\''it'\\'''\\''s'\\'')'",
  );
  expect(commandOf({ ...COPIED, query: "select: 'a\nb'" })).toBeNull();
});

test("one line has no comment and keeps texts", () => {
  expect(inOneLine("SELECT  a -- x\nFROM /* y */ b\n\nWHERE c = 'd  -- e'")).toBe("SELECT a FROM b WHERE c = 'd  -- e'");
});

test("files are named after the query", () => {
  const at = new Date("2026-05-04T10:04:12.118Z");
  expect(fileName("select: id, näme", at)).toBe("select-id-na-me-20260504-100412");
  expect(fileName("協会", at)).toBe("query-20260504-100412");
});

test("the limit and the cursor of a query are found", () => {
  expect(ownLimit("select: id | limit: 5")).toBe(5);
  expect(ownLimit("SELECT limit_x FROM a LIMIT 7")).toBe(7);
  expect(ownLimit("select: id -- limit: 5")).toBeNull();
  expect(hasOwnCursor("select: id | cursor: 'x'")).toBe(true);
  expect(hasOwnCursor("SELECT cursor FROM a")).toBe(false);
  expect(hasOwnCursor("SELECT a FROM b OFFSET 'x'")).toBe(true);
});

const page = (count: number, cursor: string | null) => {
  const rows = Array.from({ length: count }, () => ({ id: "x" }));
  const result = {
    rows,
    columns: ["id"],
    schema: {},
    cursor,
    transaction: null,
    warnings: [],
    plan: null,
    readBytes: 1_234_567,
  };
  return { result, rows, milliseconds: 12, pages: 1 };
};

test("a result says whether it is cut", () => {
  const first = saidOf(page(1000, "c"), "select: id");
  expect(first).toMatchObject({ rows: "First 1,000 rows", limit: null, hasMore: true, cost: "12 ms, 1.2 MB read" });
  expect(saidOf(page(3, "c"), "select: id")).toMatchObject({ rows: "3 rows", hasMore: false });
  expect(saidOf(page(3, "c"), "select: id | limit: 3")).toMatchObject({ rows: "First 3 rows", hasMore: true });
  expect(saidOf(page(1000, null), "select: id | sort: id").limit).toContain("There may be more");
  expect(saidOf(page(1, null), "select: id")).toMatchObject({ rows: "1 row", limit: null });
  expect(saidOf(page(5, "c"), "select: id | limit: 5 | cursor: 'b'")).toMatchObject({ hasMore: false });
});
