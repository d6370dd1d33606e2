// Tests the pure parts of the logs: queries, filtering by cells, undo, views, and files for spreadsheets.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readLogRow } from "../../api/rows";
import { csvCell, csvOf } from "./csv";
import { fileName } from "./exporting";
import { cellExpression, rangeAround, widerRange } from "./filtering";
import { exportOf, tailOf } from "./laterRequests";
import { conditions, rowsOf, type LogsRequest } from "./request";
import { noted, redone, undoFrom, undone } from "./undo";
import { logsDefaults } from "./url";
import { blockOf, errorLine, lineOf } from "./values";
import { readView, viewRecord } from "./viewRecords";
import { builtInViews, isChanged, viewedState } from "./views";

const request: LogsRequest = {
  projectId: "p",
  shape: "traces",
  filter: "error IS NOT NULL",
  from: "2026-05-04T00:00:00.000Z",
  to: null,
  sort: "",
  group: "",
  version: "",
  customs: ["metadata.user_id"],
};

test("a filter stays an expression of its own", () => {
  const filter = "true) OR (1 = 1 -- ";
  expect(conditions({ ...request, filter })).toContainEqual({ btql: filter });
  expect(conditions({ from: null, to: null, filter: " " })).toEqual([]);
});

test("the query of rows has pages by arrival only", () => {
  expect(rowsOf(request, "c").cursor).toBe("c");
  expect(rowsOf(request, "").limit).toBe(100);
  expect(rowsOf({ ...request, sort: "-duration" }, "")).toMatchObject({
    limit: 500,
    sort: [{ expr: { btql: "metrics.duration" }, dir: "desc" }],
  });
  expect(rowsOf({ ...request, sort: "scores" }, "").sort).toBeUndefined();
  expect(tailOf(request, "7").filter).toHaveLength(3);
  expect(exportOf(request)).toMatchObject({ preview_length: -1, select: [{ op: "star" }] });
});

const row = readLogRow(
  {
    id: "r",
    span_attributes: { name: "it's", type: "llm" },
    tags: ["prod"],
    error: { message: "slow" },
    duration: 1.5,
    c0: "u1",
    c1: [1],
  },
  2,
);
const columns = [
  { id: "metadata.user_id", width: 0 },
  { id: "input[0]", width: 0 },
];

test.each([
  ["name", false, "span_attributes.name = 'it''s'"],
  ["name", true, "NOT any_span(span_attributes.name = 'it''s')"],
  ["tags", false, "tags INCLUDES 'prod'"],
  ["output", false, "error IS NOT NULL"],
  ["metadata.user_id", false, "(metadata.user_id) = 'u1'"],
  ["input[0]", false, null],
  ["input", false, null],
  ["model", false, null],
])("a cell of %s filters (excluded: %s) by %s", (column, isExcluded, expected) => {
  expect(cellExpression(row, column, columns, isExcluded)).toBe(expected);
});

test("the range around a moment is the shortest that holds it", () => {
  const hour = 3_600_000;
  expect(rangeAround(0, 0.5 * hour)).toBe("1h");
  expect(rangeAround(0, 72 * hour)).toBe("7d");
  expect(rangeAround(0, 9999 * hour)).toBe("all");
});

test.each([
  ["1h", "6h"],
  ["2h", "6h"],
  ["24h", "7d"],
  ["90d", "all"],
  ["2026-05-04T10:00Z..2026-05-04T12:00Z", "all"],
  ["all", null],
])("wider than %s is %s", (range, expected) => {
  expect(widerRange(range)).toBe(expected);
});

test("undo and redo go through all states and back", () => {
  const narrowing = fc.record({ filter: fc.string(), range: fc.string(), shape: fc.string(), group: fc.string() });
  fc.assert(
    fc.property(fc.array(narrowing, { maxLength: 8 }), narrowing, (states, first) => {
      const all = states.reduce(noted, undoFrom(first));
      const back = all.past.reduce(undone, all);
      expect(back.past).toEqual([]);
      expect(back.present).toEqual(all.past[0] ?? all.present);
      expect(back.future.reduce(redone, back)).toEqual(all);
    }),
  );
});

test("a view is read as it was saved", () => {
  const state = viewedState({
    ...logsDefaults("acme", "bot"),
    filter: "a = 1",
    range: "7d",
    shape: "spans",
    sort: "-cost",
    group: "metadata.a",
    columns: [{ id: "time", width: 90 }, { id: "metadata.b", width: 0 }],
  });
  const view = readView({ id: "v", name: "mine", ...viewRecord(state) });
  expect(view.restores).toEqual(state);
  expect(isChanged(view, state)).toBe(false);
  expect(isChanged(view, { ...state, filter: "" })).toBe(true);
});

test("views of other forms are read as far as they are understood", () => {
  const view = readView({
    id: "v",
    name: "x",
    view_data: { search: { filter: ["a", { btql: "b" }, 7] } },
    options: { timeRangeFilter: { from: "2026-05-04T10:00Z", to: "2026-05-04T12:00Z" }, columnOrder: ["a", "b"], columnVisibility: { b: false } },
  });
  expect(view.restores).toMatchObject({ filter: "(a) AND (b)", range: "2026-05-04T10:00Z..2026-05-04T12:00Z", columns: [{ id: "a", width: 0 }] });
  expect(readView({ id: "v", name: "x", view_data: null, options: null }).restores).toMatchObject({ filter: "", range: "1h" });
});

test("built-in views keep the range and the columns", () => {
  for (const view of builtInViews("u")) {
    expect(view.restores).not.toHaveProperty("range");
    expect(view.restores).not.toHaveProperty("columns");
  }
});

test.each([
  ["=1+1", "'=1+1"],
  ["+1", "+1"],
  ["-2.5", "-2.5"],
  ["-cmd", "'-cmd"],
  [" =a", "' =a"],
  ["@x", "'@x"],
  ['a"b', '"a""b"'],
  ["a\nb", '"a\nb"'],
  [null, ""],
  [{ a: 1 }, '"{""a"":1}"'],
])("a spreadsheet gets %j as %s", (value, expected) => {
  expect(csvCell(value)).toBe(expected);
});

test("files have a head, and harmless names", () => {
  expect(csvOf(["a", "b"], [[1, "x"]])).toBe("a,b\r\n1,x\r\n");
  expect(fileName("../support bot", "spans")).toBe("support-bot-spans");
  expect(fileName("...", "traces")).toBe("logs-traces");
});

test("values are written in one line, and in several", () => {
  expect(lineOf(null)).toBe("-");
  expect(lineOf("")).toBe('""');
  expect(lineOf("a\n b")).toBe("a b");
  expect(lineOf({ a: 1 })).toBe('{"a":1}');
  expect(errorLine({ message: "slow" })).toBe("slow");
  expect(blockOf('{"a":1}')).toBe('{\n  "a": 1\n}');
  expect(blockOf("{a...")).toBe("{a...");
});
