// Tests of the YAML that values are written in.
import { expect, test } from "vitest";
import { parseJson } from "./json";
import { printYaml } from "./yaml";

test("objects, lists and texts are blocks", () => {
  const value = { model: "gpt", messages: [{ role: "user", content: "Hello\n  world\n" }, ["a", []], {}], count: 1.5, no: null };
  expect(printYaml(value)).toBe(
    [
      "model: gpt",
      "messages:",
      "  - role: user",
      "    content: |",
      "      Hello",
      "        world",
      "  - - a",
      "    - []",
      "  - {}",
      "count: 1.5",
      'no: null'.replace("no", '"no"'),
      "",
    ].join("\n"),
  );
});

test.each([
  ["", '""'],
  ["yes", '"yes"'],
  ["12", '"12"'],
  ["1e3", '"1e3"'],
  ["0x1f", '"0x1f"'],
  ["2026-01-01", '"2026-01-01"'],
  ["a: b", '"a: b"'],
  ["a #b", '"a #b"'],
  ["- a", '"- a"'],
  [" a", '" a"'],
  ["a ", '"a "'],
  ["a\tb", '"a\\tb"'],
  ["\u202ea", '"\\u202ea"'],
  ["a\u0000\nb", '"a\\u0000\\nb"'],
  ["plain words", "plain words"],
  ["a:b", "a:b"],
  ["\n", '"\\n"'],
])("the text %j is written as %s", (text, expected) => {
  expect(printYaml({ k: text })).toBe(`k: ${expected}\n`);
});

test("blocks keep the line breaks at their ends, and spaces at their beginning", () => {
  expect(printYaml({ k: "a\nb" })).toBe("k: |-\n  a\n  b\n");
  expect(printYaml({ k: "a\nb\n\n" })).toBe("k: |+\n  a\n  b\n\n");
  expect(printYaml({ k: "  a\nb" })).toBe("k: |2-\n    a\n  b\n");
});

test("numbers keep their digits, and depth is no limit", () => {
  expect(printYaml(parseJson('{"a":12345678901234567890}'))).toBe("a: 12345678901234567890\n");
  let deep: unknown = 1;
  for (let level = 0; level < 3000; level += 1) deep = [deep];
  expect(printYaml(deep).startsWith("- - - ")).toBe(true);
});
