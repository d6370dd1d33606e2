// Tests the plain parts of the filter bar and of the facets.
import fc from "fast-check";
import { expect, test } from "vitest";
import { textOfCondition, type Condition, type KnownField } from "../../../btql";
import { OPERATORS } from "../../../btql/chips";
import { edgeOf, roundStep, sectionsOf } from "../facets/sections";
import { isEditable } from "./editable";
import { indexOfByte } from "./fault";
import { FIXED_FIELDS, knownFields, mergedFields } from "./fields";
import { isExpression, offersOf } from "./offers";
import { choiceOf, choicesFor, conditionBy, scalarOf, typedOf } from "./operators";
import { piecesOf } from "./pieces";

test("a byte of a text leads to its character", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), (before, after) => {
      const offset = new TextEncoder().encode(before).length;
      expect(indexOfByte(before + after, offset)).toBe(before.length);
    }),
  );
});

test("pieces make the whole text, and one of them is wrong", () => {
  fc.assert(
    fc.property(fc.string(), fc.nat({ max: 20 }), (text, at) => {
      const whole = piecesOf(text, null);
      expect(whole.map((piece) => piece.text).join("")).toBe(text);
      const marked = piecesOf(text, Math.min(at, text.length));
      expect(marked.filter((piece) => piece.isWrong).length).toBe(1);
    }),
  );
});

const FOUND: readonly KnownField[] = [
  { path: ["metadata", "env"], type: "string", values: [{ value: "prod", count: 9 }] },
  { path: ["metadata", "retries"], type: "number", values: [{ value: 0, count: 3 }] },
  { path: ["scores", "Helpful"], type: "number", values: [{ value: 0.5, count: 3 }] },
  { path: ["metrics", "start"], type: "number", values: [] },
];

test("fields are read from an inference", () => {
  const rows = [
    { name: ["metadata"], type: "object", count: 3, top_values: [] },
    { name: ["metadata", "env"], type: "string", count: 1, top_values: [{ value: "prod", count: 1 }] },
    { name: ["metadata", "env"], type: "number", count: 5, top_values: [{ value: 1, count: 5 }, { value: null, count: 1 }] },
    { name: ["metadata", "gone"], type: "null", count: 9, top_values: [] },
    { name: "metadata", type: "string", count: 1 },
  ];
  expect(knownFields(rows)).toEqual([{ path: ["metadata", "env"], type: "number", values: [{ value: 1, count: 5 }] }]);
  expect(mergedFields(FOUND)).toHaveLength(FIXED_FIELDS.length + FOUND.length);
});

test("what is typed is a search, a condition, a value or a field", () => {
  const kinds = (typed: string) => offersOf(typed, FOUND).map((offer) => offer.kind);
  expect(kinds("refund")).toEqual(["search"]);
  expect(kinds("prod").slice(0, 2)).toEqual(["search", "value"]);
  expect(kinds("metadata.e")).toEqual(["search", "field"]);
  expect(kinds("metadata.env = 'x'").slice(0, 2)).toEqual(["expression", "search"]);
  expect(kinds("")).not.toContain("search");
});

test.each(["a = 1", "error is not null", "any_span(x)", "a.b in ('x')", "not_a > 3"])("%s looks like an expression", (text) =>
  expect(isExpression(text)).toBe(true));

test.each(["refund", "how is it", "'a' = b", "= 3", "what is", "12 > 3"])("%s: whether it looks like one", (text) =>
  expect(isExpression(text)).toBe(text === "how is it"));

test("a condition is made by the choice that changes it again", () => {
  for (const type of ["string", "number", "boolean", "object", "array", "time", "unknown"] as const) {
    for (const by of choicesFor(type)) {
      const made = conditionBy(["metadata", "k"], by, by.takes === "none" ? [] : ["50%"], "same");
      const again = choiceOf(made);
      expect([again?.operator, again?.isNegated]).toEqual([by.operator, by.isNegated]);
      if (by.takes !== "none") expect(typedOf(made)).toBe("50%");
    }
  }
});

test("the conditions that can be edited are those with a choice", () => {
  for (const operator of OPERATORS) {
    for (const isNegated of [false, true]) {
      for (const value of ["%x%", "x%"]) {
        const made: Condition = { path: ["a"], operator, values: [value], isNegated, span: "same" };
        expect([operator, isNegated, value, isEditable(made)]).toEqual([operator, isNegated, value, choiceOf(made) !== null]);
      }
    }
  }
});

test("a pattern that people wrote is left to the text", () => {
  const pattern: Condition = { path: ["a"], operator: "ilike", values: ["x%"], isNegated: false, span: "same" };
  expect(choiceOf(pattern)).toBeNull();
  expect(textOfCondition(pattern)).toBe("a ILIKE 'x%'");
});

test("typed values have the type of their field", () => {
  expect([scalarOf("5", "number"), scalarOf("5", "string"), scalarOf("true", "boolean"), scalarOf("x", "number")]).toEqual([5, "5", true, "x"]);
  expect(scalarOf("12345678901234567890", "number")).toBe("12345678901234567890");
});

test("facets in their sections", () => {
  const titles = sectionsOf(FOUND, "").map(({ title, facets }) => [title, ...facets.map((facet) => `${facet.title} ${facet.kind}`)]);
  expect(titles).toEqual([
    ["", "Errors errors", "Type values", "Name values", "Model values", "Tags values"],
    ["Metadata", "env values", "retries values"],
    ["Scores", "Helpful numbers"],
    ["Metrics", "duration numbers", "total_tokens numbers", "estimated_cost numbers", "time_to_first_token numbers"],
  ]);
  expect(sectionsOf(FOUND, "env").map(({ facets }) => facets.map((facet) => facet.name))).toEqual([["metadata.env"]]);
});

test("steps are round, and few", () => {
  const numbers = fc.double({ min: -1e6, max: 1e6, noNaN: true });
  fc.assert(
    fc.property(numbers, numbers, (one, other) => {
      const [low, high] = [Math.min(one, other), Math.max(one, other)];
      const step = roundStep(low, high, 8);
      expect(step).toBeGreaterThan(0);
      if (high - low > 1e-6) expect(Math.floor(high / step) - Math.floor(low / step) + 1).toBeLessThanOrEqual(9);
    }),
  );
  expect(roundStep(0, 1, 8)).toBe(0.2);
  expect([0, 1, 3].map((index) => edgeOf(index, 0.1))).toEqual([0, 0.1, 0.3]);
});
