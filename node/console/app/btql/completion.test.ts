// Tests what completion offers at which place.
import fc from "fast-check";
import { expect, test } from "vitest";
import { completions, type Known } from "./completion";
import { ranked, type KnownField } from "./known";
import { path } from "./write";

const fields: readonly KnownField[] = [
  { path: ["metadata", "model"], type: "string", values: [{ value: "gpt-4o", count: 9 }, { value: "it's", count: 1 }] },
  { path: ["metadata", "odd key"], type: "string", values: [] },
  { path: ["tags"], type: "array", values: [] },
  { path: ["metrics", "duration"], type: "number", values: [] },
  { path: ["is_root"], type: "boolean", values: [] },
  { path: ["error"], type: "object", values: [] },
];

/** The options at the mark `|` of a text. */
function at(marked: string, known: Partial<Known> = {}): readonly string[] {
  const caret = marked.indexOf("|");
  const found = completions(marked.replace("|", ""), caret, { fields, ...known });
  return found?.options.map((option) => option.text) ?? [];
}

/** The text after the first option is taken. */
function taken(marked: string, known: Partial<Known> = {}): string {
  const caret = marked.indexOf("|");
  const text = marked.replace("|", "");
  const found = completions(text, caret, { fields, ...known });
  const option = found?.options[0];
  return found === null || option === undefined ? text : text.slice(0, found.from) + option.text + text.slice(found.to);
}

test("fields and functions where an operand begins", () => {
  for (const marked of ["|", "error IS NULL AND |", "NOT |", "any_span(|"]) {
    expect(at(marked)).toEqual(expect.arrayContaining(["metadata.model", "search("]));
  }
});

test("a path that is being typed is replaced as a whole", () => {
  expect(taken("mod|")).toBe("metadata.model");
  expect(taken("metadata.|")).toBe("metadata.model");
  expect(taken("metadata.mo| = 'x'")).toBe("metadata.model = 'x'");
  expect(taken("metadata.odd|")).toBe("metadata.`odd key`");
});

test("operators behind a path are those of its type", () => {
  expect(at("metadata.model |")).toEqual(expect.arrayContaining(["= ", "IN ", "ILIKE "]));
  expect(at("tags |")[0]).toBe("INCLUDES ");
  expect(at("metrics.duration |")).toContain("BETWEEN ");
  expect(at("error |")[0]).toBe("IS NOT NULL ");
  expect(at("metadata.model NOT L|")).not.toContain("metadata.model");
});

test("values behind an operator are those of the field", () => {
  expect(at("metadata.model = |")).toEqual(["'gpt-4o'", "'it''s'"]);
  expect(at("metadata.model IN |")).toEqual(["('gpt-4o'", "('it''s'"]);
  expect(at("metadata.model IN ('a', |")).toEqual(["'gpt-4o'", "'it''s'"]);
  expect(at("is_root = |")).toEqual(["true", "false"]);
  expect(taken("metadata.model = 'gp|")).toBe("metadata.model = 'gpt-4o'");
  expect(taken("metadata.model = 'gp|t' AND error IS NULL")).toBe("metadata.model = 'gpt-4o' AND error IS NULL");
});

test("what joins conditions behind a condition", () => {
  expect(at("metadata.model = 'a' |")).toEqual(["AND ", "OR "]);
  expect(at("error IS NULL |")).toContain("AND ");
});

test("nothing within comments", () => {
  expect(at("a -- metadata.|")).toEqual([]);
});

test("ranking puts starts before parts", () => {
  expect(ranked(["x.ab", "cab", "ab"], "ab", (one) => one)).toEqual(["ab", "x.ab", "cab"]);
  expect(ranked(["b", "a"], "", (one) => one)).toEqual(["b", "a"]);
});

test("a completion replaces a part of the text that holds the caret", () => {
  const pieces = fc.array(fc.constantFrom("metadata", ".", "model", " ", "=", "'", "gpt", "(", ")", "in", "and", "not", ",", "--", "[", "0", "]", "`"), { maxLength: 12 });
  fc.assert(
    fc.property(pieces, fc.nat(), (all, place) => {
      const text = all.join("");
      const caret = text.length === 0 ? 0 : place % (text.length + 1);
      const found = completions(text, caret, { fields });
      if (found === null) return;
      expect(found.from).toBeLessThanOrEqual(caret);
      expect(found.to).toBeGreaterThanOrEqual(caret);
      expect(found.to).toBeLessThanOrEqual(text.length);
      expect(found.options.length).toBeGreaterThan(0);
    }),
  );
  expect(path(["metadata", "odd key"])).toBe("metadata.`odd key`");
});
