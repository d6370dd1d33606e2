// Tests what the editor understands of a query's text: lexemes, where the cursor is, completion, and fixes.
import fc from "fast-check";
import { expect, test } from "vitest";
import { completionAt, type Known } from "./completion";
import { nearest, remarkOfFault, remarksOf, withCondition } from "./fixes";
import { coloursOf, dialectOf, extentAt, hasStar, lexemesOf, offsetOf } from "./lexer";
import { positionAt, sourceOf } from "./position";
import { readFields } from "./queries";
import { argumentsOf } from "./useKnown";

/** Splits a text at the mark of the cursor. */
function cursor(marked: string): readonly [string, number] {
  return [marked.replace("^", ""), marked.indexOf("^")];
}

const at = (marked: string) => positionAt(...cursor(marked));

test("colours lie in order within any text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 80 }), (text) => {
      let end = 0;
      for (const { from, to } of coloursOf(text)) {
        expect(from).toBeGreaterThanOrEqual(end);
        expect(to).toBeGreaterThan(from);
        end = to;
      }
      expect(end).toBeLessThanOrEqual(text.length);
    }),
  );
});

test("the first word decides the syntax", () => {
  expect(dialectOf(lexemesOf("-- x\nselect a from b"))).toBe("sql");
  expect(dialectOf(lexemesOf("select: a"))).toBe("btql");
  expect(dialectOf(lexemesOf("WITH x AS (SELECT 1)"))).toBe("sql");
  expect(dialectOf(lexemesOf(""))).toBe("btql");
});

test("a place is counted in characters", () => {
  expect(offsetOf("ab\ncd", 2, 2)).toBe(4);
  expect(offsetOf("😀x", 1, 2)).toBe(2);
  expect(offsetOf("ab", 9, 9)).toBe(2);
  expect(extentAt("select: foo(1)", 8)).toEqual({ from: 8, to: 11 });
  expect(extentAt("select: foo", 99)).toEqual({ from: 8, to: 11 });
});

test("stars are found", () => {
  expect(hasStar("select: * | from: dataset('x')")).toBe(true);
  expect(hasStar("SELECT a, * FROM b")).toBe(true);
  expect(hasStar("SELECT count(*) FROM b")).toBe(false);
  expect(hasStar("SELECT 2 * 3 FROM b")).toBe(false);
});

test.each([
  ["^", "clause"],
  ["sel^", "clause"],
  ["select: id | ^", "clause"],
  ["select: id\nfr^", "clause"],
  ["select: id,\n^", "expression"],
  ["from: ^", "source"],
  ["select: id from: pro^", "source"],
  ["SELECT id FROM ^", "source"],
  ["from: project_logs('^", "object"],
  ["from: project_logs('a', 'b^')", "object"],
  ["from: project_logs('a') ^", "shape"],
  ["SELECT id FROM project_logs('a') ^", "clause"],
  ["select: id | filter: ^", "expression"],
  ["SELECT id FROM project_logs('a') WHERE ^", "expression"],
  ["filter: metadata.^", "expression"],
  ["filter: metadata.model = '^'", "value"],
  ["filter: metadata.model in ('a', '^", "value"],
  ["filter: metadata.model not in ('^", "value"],
  ["filter: concat('^", "nothing"],
  ["limit: ^", "nothing"],
  ["limit: 1^", "nothing"],
  ["-- a comment ^", "nothing"],
  ["select: a as ^", "nothing"],
])("at %j stands: %s", (marked, expected) => {
  expect(at(marked).at).toBe(expected);
});

test("paths lead to what is below them", () => {
  expect(at("filter: metadata.session.na^")).toMatchObject({ path: ["metadata", "session"], from: 25 });
  expect(at('filter: input."a b"[0].^')).toMatchObject({ path: ["input", "a b"] });
  expect(at("filter: scores.Helpful > 1 and metadata.model = '^")).toMatchObject({ path: ["metadata", "model"] });
});

test("what a query reads is found", () => {
  expect(sourceOf("select: id from: project_logs('a', 'b') traces")).toEqual({ name: "project_logs", ids: ["a", "b"] });
  expect(sourceOf("SELECT id FROM dataset('it''s')")).toEqual({ name: "dataset", ids: ["it's"] });
  expect(sourceOf("select: id from: project_logs('")).toBeNull();
  const id = "0b9c1f0e-1111-4222-8333-444455556666";
  expect(argumentsOf(`from: experiment('${id}') filter: id = '${id}'`)).toEqual([{ id, at: 55, kind: "experiment" }]);
});

const FIELDS = readFields([
  { name: ["metadata"], type: "object", count: 3, top_values: [] },
  { name: ["metadata", "model"], type: "string", count: 3, top_values: [{ value: "it's", count: 2 }, { value: "b", count: 1 }] },
  { name: ["metadata", "a b"], type: "number", count: 1, top_values: [] },
  { name: ["metadata", "a b"], type: "null", count: 1, top_values: [] },
  { name: ["created"], type: "string", count: 3, top_values: [] },
]);

const known: Known = {
  objects: async (kind) => (kind === "project" ? [{ id: "P1", name: "support-bot", project: "" }] : []),
  fields: async () => FIELDS,
};

async function offered(marked: string): Promise<Readonly<Record<string, string>>> {
  const found = await completionAt(known, ...cursor(marked), "auto");
  return Object.fromEntries((found?.options ?? []).map(({ label, apply }) => [label, apply ?? label]));
}

test("completion offers clauses, sources by name, fields and values", async () => {
  expect(await offered("^")).toMatchObject({ select: "select: ", SELECT: "SELECT " });
  expect(await offered("select: id | s^")).not.toHaveProperty("select");
  expect(await offered("from: s^")).toMatchObject({ "project_logs('support-bot')": "project_logs('P1')" });
  expect(await offered("from: project_logs('^')")).toEqual({ "support-bot": "P1'" });
  expect(await offered("filter: ^")).toMatchObject({ metadata: "metadata", "metadata.model": "metadata.model", count: "count(1)" });
  expect(await offered("filter: metadata.^")).toEqual({ model: "model", "a b": '"a b"' });
  expect(await offered("filter: metadata.model = '^'")).toEqual({ "it's": "it''s'", b: "b'" });
  expect(await offered("select: a as ^")).toEqual({});
});

test("a value that is completed replaces the closing quote too", async () => {
  const [text, place] = cursor("filter: metadata.model = 'b^'");
  expect(await completionAt(known, text, place, "auto")).toMatchObject({ from: 26, to: 28 });
});

test("a condition is added to a filter, or as one", () => {
  const week = "created > 1";
  expect(withCondition("select: id | filter: a = 1 | limit: 2", week)).toBe("select: id | filter: created > 1 and a = 1 | limit: 2");
  expect(withCondition("filter: a or b\nselect: id", week)).toBe("filter: created > 1 and (a or b)\nselect: id");
  expect(withCondition("select: id from: dataset('x')", week)).toBe("select: id from: dataset('x')\n| filter: created > 1");
  expect(withCondition("SELECT id FROM a GROUP BY 1", week)).toBe("SELECT id FROM a\nWHERE created > 1 GROUP BY 1");
  expect(withCondition("SELECT id FROM a WHERE b OR c LIMIT 1", week)).toBe("SELECT id FROM a WHERE created > 1 AND (b OR c) LIMIT 1");
});

test("words that are nearly known are found", () => {
  expect(nearest("metadat", ["metadata", "metrics"])).toBe("metadata");
  expect(nearest("idd", ["id", "input"])).toBe("id");
  expect(nearest("frobnicate", ["id"])).toBeNull();
});

test("faults and warnings stand at their words, with fixes", () => {
  const fault = remarkOfFault("select: cuont(1)", { line: 1, column: 9, message: "there is no function `cuont`: `cuont(1)`" });
  expect(fault).toMatchObject({ from: 8, to: 13, severity: "error", fix: { text: "select: count(1)" } });
  const warnings = [
    { code: "unknownField", message: "there is no column `idd`; it is null in every row" },
    { code: "missingSegmentEliminationSpecs", message: "No filters" },
  ];
  const [field, scan] = remarksOf("select: idd | from: dataset('x')", warnings, ["id", "input"]);
  expect(field).toMatchObject({ from: 8, to: 11, line: 1, column: 9, fix: { text: "select: id | from: dataset('x')" } });
  expect(scan?.fix?.text).toContain("| filter: created >= now() - interval 7 day");
});
