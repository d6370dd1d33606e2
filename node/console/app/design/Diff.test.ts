// Tests that differences lead from one text to the other.
import fc from "fast-check";
import { expect, test } from "vitest";
import { pathChanges, pathChangesOf } from "./DiffPaths";
import { diffCounts, diffOf, foldedSame, linePairs, type DiffPart } from "./DiffWords";

const texts = fc.array(fc.constantFrom("a", "b", "word", " ", "\n", ".", "\u{1f600}"), { maxLength: 40 }).map((parts) => parts.join(""));

const side = (parts: readonly DiffPart[], kind: DiffPart["kind"]): string =>
  parts.filter((part) => part.kind === "same" || part.kind === kind).map((part) => part.text).join("");

test("the parts of a difference give both texts", () => {
  fc.assert(
    fc.property(texts, texts, (before, after) => {
      const parts = diffOf(before, after);
      expect(side(parts, "removed")).toBe(before);
      expect(side(parts, "added")).toBe(after);
    }),
  );
});

test("the lines side by side give both texts", () => {
  const lines = (text: string): string => text.replace(/\n$/, "");
  fc.assert(
    fc.property(texts, texts, (before, after) => {
      const pairs = linePairs(before, after);
      const join = (which: "before" | "after"): string =>
        pairs.flatMap((pair) => (pair[which] === null ? [] : [pair[which].map((part) => part.text).join("")])).join("\n");
      expect(join("before")).toBe(lines(before));
      expect(join("after")).toBe(lines(after));
    }),
  );
});

test("words that are the same stay", () => {
  const parts = diffOf("Use the reset link.", "Use the new reset link.");
  expect(parts.map(({ kind, text }) => [kind, text])).toEqual([["same", "Use the "], ["added", "new "], ["same", "reset link."]]);
  expect(diffCounts(parts)).toEqual({ added: 1, removed: 0 });
});

test("texts that differ everywhere are replaced, also when they are long", () => {
  const [before, after] = ["a", "b"].map((letter) => `${letter}1 `.repeat(20_000).split(" ").map((word, at) => word + at).join(" "));
  const parts = diffOf(before ?? "", after ?? "");
  expect(side(parts, "removed")).toBe(before);
  expect(side(parts, "added")).toBe(after);
});

test("long equal parts are folded between their ends", () => {
  const text = Array.from({ length: 20 }, (_, at) => `line ${at}`).join("\n");
  expect(foldedSame(text, false, false)?.hidden).toBe(14);
  expect(foldedSame("a\nb", true, true)).toBeNull();
});

test("JSON changes by path", () => {
  expect(pathChangesOf('{"a":[1,2],"b":{"c":12345678901234567890}}', '{"a":[1],"b":{"c":12345678901234567891},"d":null}')).toEqual([
    { path: "a[1]", kind: "removed", before: "2", after: "" },
    { path: "b.c", kind: "changed", before: "12345678901234567890", after: "12345678901234567891" },
    { path: "d", kind: "added", before: "", after: "null" },
  ]);
  expect(pathChangesOf("text", "{}")).toBeNull();
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(pathChanges(value, value)).toEqual([]);
    }),
  );
});
