// Tests that faults in JSON are found exactly where the browser's parser finds one.
import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonFault } from "./CellEditorJson";

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test("what JSON.stringify writes has no fault", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (value, indent) => {
      expect(jsonFault(JSON.stringify(value, null, indent))).toBeNull();
    }),
  );
});

test("a text has a fault if and only if the parser refuses it", () => {
  const damaged = fc.tuple(fc.jsonValue(), fc.nat(60), fc.string({ maxLength: 3 }), fc.nat(3)).map(([value, at, added, gone]) => {
    const text = JSON.stringify(value, null, 1);
    const start = at % (text.length + 1);
    return text.slice(0, start) + added + text.slice(start + gone);
  });
  const tokens = fc
    .array(fc.constantFrom("{", "}", "[", "]", ":", ",", '"a"', "1", "-", "01", "1.", "true", "nul", " ", "\n", "\\", '"'), { maxLength: 12 })
    .map((parts) => parts.join(""));
  fc.assert(
    fc.property(fc.oneof(damaged, tokens), (text) => {
      expect(jsonFault(text) === null, text).toBe(isJson(text));
    }),
    { numRuns: 2000 },
  );
});

test("a fault has its line and column", () => {
  expect(jsonFault('{\n  "a": 1,\n}')).toMatchObject({ line: 3, column: 1, message: "There is a comma too many before this." });
  expect(jsonFault('{\n  "a" 1\n}')).toMatchObject({ line: 2, column: 7, message: "A colon is missing here." });
  expect(jsonFault("{'a': 1}")).toMatchObject({ line: 1, column: 2, message: "Strings stand in double quotes." });
  expect(jsonFault('["a]')).toMatchObject({ line: 1, column: 2, message: "This string has no end." });
});
