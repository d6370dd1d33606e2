// Tests the writers, the tokens, and how filters become chips and back.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { chipsOf, conditionOf, nameOf, textOfChips, textOfCondition, treeOfChips, treeOfCondition, type Condition } from "./chips";
import { patternWithin, textWithin } from "./chips";
import { COMPARISONS, OPERATORS, type Chip } from "./chips";
import { condition, excluded, placed, withChip } from "./edit";
import { stateOf, toggled } from "./toggles";
import { splitConjunction, tokens } from "./tokens";
import { isTree, type Tree } from "./tree";
import { conjunction, createdWithin, literal, negation, path } from "./write";

/** Strings that would break out of what they stand in if they were not quoted. */
export const HOSTILE = ["'", "''", "\\", "\\'", "a' OR 1=1 --", "`", "``", '"', "a\nb", "--", "/*", "*/", "%", "_", "\u0000", "\ud800", "‮", "größe", "", " ", "and", "null", "a.b", "a[0]", "$x", "1", "😀"];

const strings = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom(...HOSTILE));
const steps = fc
  .tuple(strings, fc.array(fc.oneof(strings, fc.integer({ min: -9, max: 9 })), { maxLength: 3 }))
  .map(([first, rest]) => [first, ...rest]);
const scalars = fc.oneof(strings, fc.boolean(), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e12, max: 1e12 }));

const only = (text: string): readonly string[] => tokens(text).map(({ kind }) => kind);

/** The content of a text in single quotes, read as the language does. */
const unquoted = (text: string): string => text.slice(1, -1).replace(/''|\\([\\'])/g, (_, escaped: string | undefined) => escaped ?? "'");

const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, "\ufffd");

test("a text is one token that reads back, whatever is in it", () => {
  fc.assert(
    fc.property(strings, (value) => {
      expect(only(literal(value))).toEqual(["text"]);
      expect(unquoted(literal(value))).toBe(wellFormed(value));
    }),
  );
});

test("numbers, flags and lists", () => {
  expect([1, -2.5, 1e21, NaN, Infinity, -0, true, null].map(literal)).toEqual(["1", "-2.5", "1e+21", "null", "null", "0", "true", "null"]);
  expect(literal(["a'b", [1]])).toBe("['a''b', [1]]");
});

test("a path has a name or a quoted name for each key", () => {
  fc.assert(
    fc.property(fc.array(strings, { minLength: 1, maxLength: 4 }), (keys) => {
      const kinds = only(path(keys)).filter((kind) => kind !== "symbol");
      expect(kinds).toHaveLength(keys.length);
      for (const kind of kinds) expect(["name", "quotedName"]).toContain(kind);
    }),
  );
  expect(path(["metadata", "odd key", 0, "a`b", "model"])).toBe("metadata.`odd key`[0].`a``b`.model");
  expect(path(["and"])).toBe("`and`");
  expect(path(["metadata", "and"])).toBe("metadata.and");
});

test("the parts of a conjunction are found again", () => {
  const parts = fc.oneof(
    scalars.map((value) => `${path(["metadata", "k"])} = ${literal(value)}`),
    fc.constantFrom("a or b", "a BETWEEN 1 AND 2", "not a and b", "CASE WHEN a AND b THEN c ELSE d END", "f(a and b)", "x ? y : z", "a -- b or c", "(a or b)", "a /* and */ = 1", "metrics.end = 1"),
  );
  fc.assert(
    fc.property(fc.array(parts, { minLength: 2, maxLength: 5 }), (all) => {
      const split = splitConjunction(conjunction(all));
      const expected = all.flatMap((part) => splitConjunction(conjunction(["x", part]))?.slice(1) ?? []);
      expect(split).toEqual(expected);
    }),
  );
});

test("parentheses stand only where they are needed", () => {
  expect(conjunction([])).toBe("");
  expect(conjunction(["", "a = 1", " "])).toBe("a = 1");
  expect(conjunction(["a or b", "c and d", "e ? f : g"])).toBe("(a or b) AND c and d AND (e ? f : g)");
  expect(conjunction(["a -- rest", "b"])).toBe("a AND b");
  expect(conjunction(["'open", "b"])).toBe("('open) AND b");
  expect(negation("a = 1")).toBe("NOT a = 1");
  expect(negation("a and b")).toBe("NOT (a and b)");
  expect(createdWithin({ from: "2026-05-04T10:00:00.000Z", to: null })).toBe("created >= '2026-05-04T10:00:00.000Z'");
});

test("texts are cut into tokens that cover all but blanks", () => {
  fc.assert(
    fc.property(fc.oneof(strings, fc.string({ unit: fc.constantFrom(..."'\"`\\-/*ab1.=() \n") })), (text) => {
      let end = 0;
      for (const token of tokens(text)) {
        expect(token.end).toBeGreaterThan(token.start);
        expect(text.slice(end, token.start).trim()).toBe("");
        end = token.end;
      }
      expect(text.slice(end).trim()).toBe("");
    }),
  );
});

test.each([
  ["a.b = 'x' -- c", ["name", "symbol", "name", "symbol", "text", "comment"]],
  ["x NOT IN (1.5e3, .5)", ["name", "keyword", "keyword", "symbol", "number", "symbol", "number", "symbol"]],
  ["metrics.end > 1", ["name", "symbol", "name", "symbol", "number"]],
  ["a <!=> b", ["name", "symbol", "name"]],
  ["'open", ["wrong"]],
])("the kinds of %s", (text, kinds) => expect(only(text)).toEqual(kinds));

const plainConditions = fc.oneof(
  fc.record({ path: steps, operator: fc.constantFrom(...COMPARISONS), values: fc.tuple(scalars) }),
  fc.record({ path: steps, operator: fc.constant("in" as const), values: fc.array(scalars, { minLength: 1, maxLength: 4 }) }),
  fc.record({ path: steps, operator: fc.constantFrom("isnull", "isnotnull", "true"), values: fc.constant([]) }),
  fc.record({ path: fc.constant([]), operator: fc.constant("search" as const), values: fc.tuple(strings) }),
);

const conditions: fc.Arbitrary<Condition> = fc
  .tuple(plainConditions, fc.boolean(), fc.constantFrom("same", "some", "no"))
  .map(([plain, isNegated, span]) => ({ ...plain, isNegated, span }));

test("a condition reads back from its tree", () => {
  fc.assert(
    fc.property(conditions, (one) => {
      expect(conditionOf(treeOfCondition(one))).toEqual(one);
    }),
  );
});

test("the text of chips is cut where their tree is", () => {
  fc.assert(
    fc.property(fc.array(conditions, { minLength: 1, maxLength: 5 }), (all) => {
      const chips = all.map((one): Chip => ({ text: textOfCondition(one), tree: treeOfCondition(one), condition: one }));
      const tree = treeOfChips(chips);
      expect(tree === null ? [] : chipsOf(tree, textOfChips(chips))).toEqual(chips);
    }),
  );
});

test("numbers that have lost digits are left to the text", () => {
  const tree: Tree = { op: "gt", left: { op: "ident", name: ["_xact_id"] }, right: { op: "literal", value: 2 ** 60 } };
  expect(conditionOf(tree)).toBeNull();
  expect(chipsOf(tree, "_xact_id > 1152921504606846977")[0]?.text).toBe("_xact_id > 1152921504606846977");
});

test("patterns of ILIKE", () => {
  fc.assert(
    fc.property(strings, (text) => {
      expect(textWithin(patternWithin(text))).toBe(text);
    }),
  );
  expect([textWithin("%a%b%"), textWithin("a%"), textWithin("%a_%")]).toEqual([null, null, null]);
});

test("a second condition of traces may hold for another span", () => {
  const model = condition(["metadata", "model"], "eq", "gpt-4o");
  const env = condition(["metadata", "env"], "eq", "prod");
  expect(textOfChips(withChip(withChip([], model, "traces"), env, "traces"))).toBe("metadata.model = 'gpt-4o' AND any_span(metadata.env = 'prod')");
  expect(textOfChips(withChip(withChip([], model, "spans"), env, "spans"))).toBe("metadata.model = 'gpt-4o' AND metadata.env = 'prod'");
});

test("excluding", () => {
  const model = condition(["metadata", "model"], "eq", "gpt-4o");
  const error = condition(["error"], "isnotnull");
  expect(textOfCondition(excluded(model, "traces"))).toBe("NOT any_span(metadata.model = 'gpt-4o')");
  expect(textOfCondition(excluded(model, "spans"))).toBe("metadata.model <!=> 'gpt-4o'");
  expect(textOfCondition(excluded(error, "spans"))).toBe("error IS NULL");
});

test("a condition that is toggled twice is gone, and a filter never holds it with its opposite", () => {
  fc.assert(
    fc.property(conditions.filter((one) => one.span === "same"), fc.boolean(), fc.constantFrom("traces", "spans"), (one, isExcluded, shape) => {
      const once = toggled([], one, isExcluded, shape);
      expect(stateOf(once, one, shape)).toBe(isExcluded ? "without" : "with");
      expect(toggled(once, one, isExcluded, shape)).toEqual([]);
      const opposite = toggled(once, one, !isExcluded, shape);
      expect(opposite).toHaveLength(1);
      expect(stateOf(opposite, one, shape)).toBe(isExcluded ? "with" : "without");
    }),
  );
  expect(placed([], condition(["a"], "eq", 1), "traces").span).toBe("same");
});

test("chips have names", () => {
  const names = [
    condition(["metadata", "model"], "eq", "gpt-4o"),
    condition(["error"], "isnotnull"),
    condition([], "search", "refund"),
    { ...condition(["tags"], "includes", "prod"), isNegated: true },
    { ...condition(["metadata", "env"], "in", "a", "b"), span: "some" as const },
    condition(["input"], "ilike", "%a\\%b%"),
  ].map((one) => nameOf({ text: "", tree: treeOfCondition(one), condition: one }));
  expect(names).toEqual([
    "metadata.model = gpt-4o",
    "error is present",
    "text refund",
    "tags does not include prod",
    "any span metadata.env is one of a, b",
    "input contains a%b",
  ]);
  expect(OPERATORS).toContain("search");
});

interface Case {
  readonly case: string;
  readonly text: string;
  readonly tree: Tree;
}

const linesOf = (address: string): readonly string[] =>
  readFileSync(new URL(address, import.meta.url), "utf8").split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));

function caseOf(line: string): Case {
  const value: unknown = JSON.parse(line);
  if (typeof value !== "object" || value === null || !("case" in value && "text" in value && "tree" in value)) throw new Error(line);
  const { case: from, text, tree } = value;
  if (typeof from !== "string" || typeof text !== "string" || !isTree(tree)) throw new Error(line);
  return { case: from, text, tree };
}

/** A conjunction in one form: the language has several trees for it. */
function flat(tree: Tree): Tree {
  const chips = chipsOf(tree, "");
  return chips[0]?.tree ?? tree;
}

test("the filters of the language's own cases become chips and back", () => {
  const sources = ["examples", "decisions"].map((name) => readFileSync(new URL(`../../../../tests/btql/cases/${name}.jsonl`, import.meta.url), "utf8")).join("\n");
  const cases = linesOf("./cases.jsonl").map(caseOf);
  expect(cases.length).toBeGreaterThan(100);
  for (const one of cases) {
    expect(sources).toContain(one.case);
    const chips = chipsOf(one.tree, one.text);
    expect(treeOfChips(chips)).toEqual(flat(one.tree));
    expect(textOfChips(chips)).toBe(one.text);
    for (const chip of chips) {
      if (chip.condition === null) continue;
      expect(treeOfCondition(chip.condition)).toEqual(chip.tree);
      expect(textOfCondition(chip.condition)).toBe(chip.text);
    }
  }
});

test("trees of the cases that are written as trees", () => {
  const queries = ["examples", "decisions"].flatMap((name) => linesOf(`../../../../tests/btql/cases/${name}.jsonl`)).map((line): unknown => JSON.parse(line));
  let count = 0;
  for (const one of queries) {
    if (typeof one !== "object" || one === null || !("query" in one)) continue;
    const { query } = one;
    if (typeof query !== "object" || query === null || !("filter" in query)) continue;
    const { filter } = query;
    if (!isTree(filter)) continue;
    count += 1;
    const back = conditionOf(filter);
    if (back !== null) expect(treeOfCondition(back)).toEqual(filter);
  }
  expect(count).toBeGreaterThan(5);
});
