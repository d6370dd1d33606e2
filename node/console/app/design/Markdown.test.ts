// Tests of Markdown: what it reads, and what it never makes of hostile text.
import fc from "fast-check";
import { expect, test } from "vitest";
import { inlinesOf, piecesOf, safeUrl, type Inline } from "./MarkdownLine";
import { markdownOf } from "./MarkdownTree";

const kinds = (text: string): readonly string[] => markdownOf(text).map((block) => block.kind);

const words = (content: readonly Inline[]): string =>
  content.map((inline) => ("text" in inline ? inline.text : "content" in inline ? words(inline.content) : "")).join("");

test.each([
  ["# a\n\nb\n\n- c\n- d\n\n1. e\n\n> f\n\n---", ["heading", "paragraph", "list", "list", "quote", "rule"]],
  ["```js\n# no heading\n```", ["code"]],
  ["| a | b |\n|---|---:|\n| 1 | 2 |", ["table"]],
  ["a\n===\n", ["heading"]],
  ["    indented", ["code"]],
  ["<div>\n<script>x</script>", ["paragraph"]],
  ["", []],
])("%j has its blocks", (text, expected) => {
  expect(kinds(text)).toEqual(expected);
});

test("tasks, alignments and languages are read", () => {
  const [list, table, code] = markdownOf("- [x] a\n- [ ] b\n\n| a | b |\n|:-:|---:|\n| 1 |\n\n~~~py\nx\n~~~");
  expect(list?.kind === "list" && list.items.map((item) => item.isDone)).toEqual([true, false]);
  expect(table?.kind === "table" && [table.aligns, table.rows.length]).toEqual([["center", "end"], 2]);
  expect(code?.kind === "code" && [code.language, code.text]).toEqual(["py", "x"]);
});

test.each([
  ["**a** _b_ ~~c~~ `d`", ["mark", "text", "mark", "text", "mark", "text", "code"]],
  ["[a](x:y) ![b](z)", ["link", "text", "image"]],
  ["snake_case_name 2*3*4", ["text"]],
  ["a  \nb", ["text", "break", "text"]],
  ["<b>x</b>", ["text"]],
])("%j has its pieces", (text, expected) => {
  expect(inlinesOf(text).map((inline) => inline.kind).slice(0, expected.length)).toEqual(expected);
});

test("HTML stays text", () => {
  expect(words(inlinesOf("<img src=x onerror=alert(1)>"))).toBe("<img src=x onerror=alert(1)>");
});

test.each(["javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc", "/relative", "//host", " java\nscript:x"])("%j is no link", (url) => {
  expect(safeUrl(url)).toBeNull();
});

test("characters that cannot be seen are named", () => {
  expect(piecesOf("a\u202eb\u200b")).toEqual([{ text: "a" }, { code: "U+202E" }, { text: "b" }, { code: "U+200B" }]);
  expect(piecesOf("\u{1f468}\u200d\u{1f469}")).toEqual([{ text: "\u{1f468}\u200d\u{1f469}" }]);
});

test("any text is read in a time that grows with its length", () => {
  const letters = fc.array(fc.constantFrom("*", "_", "`", "[", "]", "(", ")", "!", "<", "> ", "- ", "1. ", "|", "\n", "#", "~", "a", " ", "    ", "\\"), { maxLength: 80 });
  fc.assert(fc.property(letters, (parts) => void markdownOf(parts.join(""))));
  for (const part of ["[", "*a ", "`", "> ", "- ", "![", "<", "|", "**", "a_", "(", "[a](", "[a]()", "[".repeat(30) + "]"]) {
    // Processor time: builds run beside these tests.
    const before = process.cpuUsage();
    markdownOf(part.repeat(20_000));
    const { user, system } = process.cpuUsage(before);
    expect(user + system, part).toBeLessThan(4_000_000);
  }
});
