// Tests of the rows of a JSON value, of its paths, and of finding in it.
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJson } from "../lib/json";
import { DEPTH_MAX, firstOpen, idOf, isInText, linesOf, pathText, rowsOf, valueAt, type JsonRow, type Opened } from "./JsonRows";
import { openedTo, pathsWith } from "./JsonSearch";

/** Everything is open. */
class All extends Map<string, boolean> {
  override get(): boolean {
    return true;
  }
}

const all: Opened = new All();

const rows = (value: unknown, opened: Opened = new Map(), embedded: readonly string[] = []): readonly JsonRow[] =>
  rowsOf(value, { opened, first: firstOpen(value), embedded: new Set(embedded), columns: 80 });

const shown = (value: unknown, opened: Opened = new Map(), embedded: readonly string[] = []): readonly string[] =>
  rows(value, opened, embedded).map(({ depth, label, text, size }) => [" ".repeat(depth) + (label ?? ""), text, size].filter((part) => part.trim() !== "").join(" | "));

test("a small value is open", () => {
  expect(shown({ a: [1, "b"], c: null })).toEqual(["2 keys", " a | 2 items", "  0 | 1", '  1 | "b"', " c | null"]);
});

test("numbers keep their digits", () => {
  expect(shown(parseJson('{"a":12345678901234567890,"b":1.10}'))).toEqual(["2 keys", " a | 12345678901234567890", " b | 1.10"]);
});

test("identities of rows never collide", () => {
  const step = fc.oneof(fc.nat(12), fc.stringMatching(/^[ab/~#'0-9\n]{0,6}$/));
  const path = fc.array(step, { maxLength: 4 });
  fc.assert(
    fc.property(path, path, (one, other) => {
      if (JSON.stringify(one) !== JSON.stringify(other)) expect(idOf(one)).not.toBe(idOf(other));
    }),
  );
  const ids = rows({ a: "x\ny", "a#0": 1, "a/0": 2 }, all).map((row) => row.id);
  expect(new Set(ids).size).toBe(ids.length);
});

test("each row has the value at its path, and a unique identity", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const made = rows(value, all);
      expect(new Set(made.map((row) => row.id)).size).toBe(made.length);
      for (const row of made) if (row.label !== null) expect(valueAt(value, row.path)).not.toBeUndefined();
    }),
  );
});

test("long texts are folded with their size", () => {
  expect(shown({ a: "x".repeat(3000) })[1]).toContain("2.9 KB");
  expect(shown({ a: "x".repeat(3000) })).toHaveLength(2);
  expect(shown({ a: "one\ntwo" })).toEqual(["1 key", " a | 7 B", "one", "two"]);
});

test("a large value starts with its first level", () => {
  const value = { list: Array.from({ length: 50_000 }, (_, index) => ({ index })), b: 1 };
  expect(shown(value)).toHaveLength(3);
});

test("text that is JSON opens as what it says, and is searched", () => {
  const value = { a: '{"b":[1,{"c":"needle"}]}' };
  const [, row] = rows(value);
  expect(row?.isEmbedded).toBe(true);
  const id = idOf(["a"]);
  expect(shown(value, new Map(), [id])[1]).toBe(" a | text, 1 key");
  expect(pathsWith(value, "needle")).toEqual([["a"]]);
  expect(pathsWith(value, "needle", new Set([id]))).toEqual([["a", "b", 1, "c"]]);
  expect(valueAt(value, ["a", "b", 1, "c"])).toBe("needle");
  expect(isInText(value, ["a", "b"])).toBe(true);
  expect(isInText(value, ["a"])).toBe(false);
});

test("values that are too deep are text, and are found", () => {
  let value: unknown = { needle: 1 };
  for (let level = 0; level < DEPTH_MAX + 50; level += 1) value = [value];
  const made = rows(value, all);
  expect(made.at(-1)?.depth).toBe(DEPTH_MAX + 1);
  expect(made.map((row) => row.text).join("")).toContain("needle");
  expect(pathsWith(value, "needle")).toHaveLength(1);
});

test("what is found can be shown", () => {
  const value = { list: Array.from({ length: 5000 }, (_, index) => ({ name: `n${index}` })) };
  const [path] = pathsWith(value, "n4321");
  expect(path).toEqual(["list", 4321, "name"]);
  const open = openedTo(new Map(), path ?? []);
  expect(rows(value, open).some((row) => row.text === '"n4321"')).toBe(true);
});

test("paths are written as people write them", () => {
  expect(pathText(["messages", 0, "content", "a b", "__proto__"])).toBe('messages[0].content["a b"].__proto__');
});

test("lines hold all letters and break between words", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 400, unit: "binary" }), fc.integer({ min: 20, max: 60 }), (text, columns) => {
      const lines = linesOf(text, columns);
      expect(lines.join("").replaceAll("\n", "")).toBe(text.replaceAll("\n", ""));
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
    }),
  );
});
