// Tests that the address of the logs and their state are the same thing in two forms.
import fc from "fast-check";
import { expect, test } from "vitest";
import { isKept, KEPT, MOST_IN_ADDRESS, readAddress } from "../../lib/address";
import { TRACE_LENSES } from "../../lib/trace";
import { BUILT_IN_IDS, nextSort, readColumns, toggled, writeColumns, type ColumnSpec } from "./columns";
import { LOG_SHAPES, logsDefaults, logsUrl, type LogsState } from "./url";
import { readViews } from "./viewRecords";

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const name = text.filter((value) => value !== "" && value !== "." && value !== "..");
const id = fc.oneof(fc.constantFrom(...BUILT_IN_IDS), text.filter((value) => value !== ""), fc.constantFrom("a,b", "a:b", "a\\", "x:12"));

const columns: fc.Arbitrary<readonly ColumnSpec[]> = fc.uniqueArray(
  fc.record({ id, width: fc.oneof(fc.constant(0), fc.integer({ min: 40, max: 1600 })) }),
  { minLength: 1, maxLength: 6, selector: (column) => column.id },
);

const state: fc.Arbitrary<LogsState> = fc.record({
  organization: name,
  project: name,
  filter: text,
  range: name,
  view: text,
  shape: fc.constantFrom(...LOG_SHAPES),
  columns,
  sort: text,
  group: text,
  row: text,
  span: text,
  tab: text,
  find: text,
  lens: fc.constantFrom(...TRACE_LENSES),
  version: text,
  oid: text,
});

const read = (href: string): LogsState | null => {
  const address = readAddress(href);
  return address === null ? null : logsUrl.read(address);
};

test("an address means the state that it was written from", () => {
  fc.assert(
    fc.property(state, (one) => {
      expect(read(logsUrl.write(one))).toEqual(one);
    }),
  );
});

test("columns are read as they were written", () => {
  fc.assert(
    fc.property(columns, (one) => {
      expect(readColumns(writeColumns(one))).toEqual(one);
    }),
  );
});

test("defaults are not written, and what is not well-formed is left out", () => {
  expect(logsUrl.write(logsDefaults("acme", "bot"))).toBe("/app/acme/p/bot/logs");
  expect(readColumns("")).toBe(logsDefaults("a", "b").columns);
  expect(readColumns("time,,time:99,name:7,id:9999")).toEqual([
    { id: "time", width: 0 },
    { id: "name", width: 40 },
    { id: "id", width: 1600 },
  ]);
});

test("a column is added at the end, and the last one stays", () => {
  expect(toggled([{ id: "time", width: 0 }], "a.b").map((column) => column.id)).toEqual(["time", "a.b"]);
  expect(toggled([{ id: "time", width: 0 }], "time")).toHaveLength(1);
});

test.each([
  ["", "duration", "-duration"],
  ["-duration", "duration", "duration"],
  ["duration", "duration", ""],
  ["", "name", "name"],
  ["name", "name", "-name"],
  ["-duration", "name", "name"],
  ["", "time", "-time"],
  ["-time", "time", "time"],
  ["time", "time", ""],
  ["", "arrived", "arrived"],
  ["arrived", "arrived", ""],
])("after %j a click on %s sorts by %j", (sort, column, expected) => {
  expect(nextSort(sort, column)).toBe(expected);
});

test("a filter that is too long is not written: the view names it", () => {
  const written = (filter: string): string => logsUrl.write({ ...logsDefaults("acme", "bot"), filter, view: `${KEPT}7` });
  expect(written("a".repeat(MOST_IN_ADDRESS))).toContain("q=aaa");
  expect(written("a".repeat(MOST_IN_ADDRESS + 1))).toBe("/app/acme/p/bot/logs?v=filter.7");
  expect(isKept(`${KEPT}7`)).toBe(true);
  expect(isKept("errors")).toBe(false);
});

test("records that keep long filters are not among the views", () => {
  const kept = { id: "7", name: "Filter", view_data: { custom_charts: { console_filter: { text: "a", unnamed: true } } } };
  const views = readViews({ objects: [kept, { id: "8", name: "Mine", view_data: {} }] });
  expect(views.map((view) => view.name)).toEqual(["Mine"]);
});
