// Tests the cursor of lists, the preferences, and quoting.
import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parsePreferences } from "./preferences";
import { isQuotable, percentEncoded, programQuoted, shellQuoted } from "./quoting";
import { createCursor, moved } from "./store";

test("the cursor stays within the list", () => {
  const ids = ["a", "b", "c"];
  expect(moved(ids, "a", 1)).toBe("b");
  expect(moved(ids, "c", 1)).toBe("c");
  expect(moved(ids, "a", -10)).toBe("a");
  expect(moved(ids, null, 1)).toBe("a");
  expect(moved(ids, "gone", -1)).toBe("c");
  expect(moved([], null, 1)).toBeNull();
});

test("only the rows that a move concerns change", () => {
  const cursor = createCursor("a");
  const [isA, isB] = [cursor.is("a"), cursor.is("b")];
  cursor.set("b");
  expect([isA.value, isB.value]).toEqual([false, true]);
});

test("unknown preferences become the defaults", () => {
  const defaults = parsePreferences(null);
  expect(parsePreferences("no json")).toEqual(defaults);
  expect(parsePreferences("[]")).toEqual(defaults);
  expect(parsePreferences("null")).toEqual(defaults);
  expect(parsePreferences('{"theme": "pink", "singleKeys": 1}')).toEqual(defaults);
  expect(parsePreferences('{"theme": "dark", "railFolded": true}')).toEqual({
    ...defaults,
    theme: "dark",
    railFolded: true,
  });
});

test.each(["a\nb", "a\u0000", "\u202eevil", "zero\u200bwidth", "a\u2028b", "\ud800", ""])("%j is not quotable", (text) => {
  expect(isQuotable(text)).toBe(false);
});

test("a shell reads what was quoted", () => {
  const quotable = fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 20 }).filter(isQuotable);
  const hostile = fc.constantFrom("$(touch x)", "`id`", "a'b", "'; rm -rf / #", "-n", '"', "\\", "!!", "~", "*");
  fc.assert(
    fc.property(fc.oneof(quotable, hostile), (text) => {
      const read = execFileSync("sh", ["-c", `printf %s ${shellQuoted(text)}`], { encoding: "utf8" });
      expect(read).toBe(text);
    }),
    { numRuns: 40 },
  );
});

test("percent encoding is safe within double quotes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      expect(percentEncoded(text)).toMatch(/^[\w.~%-]*$/);
      expect(decodeURIComponent(percentEncoded(text))).toBe(text);
    }),
  );
});

test("program strings read back", () => {
  expect(JSON.parse(programQuoted('a"b\\c'))).toBe('a"b\\c');
});
