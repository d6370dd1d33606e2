// Tests that the languages of copied code read a quoted text as that text.
import fc from "fast-check";
import { expect, test } from "vitest";
import { isQuotable, programQuoted, rubyQuoted } from "./quoting";

/** Parts that mean something within the strings of a language, alone or side by side. */
const MEANT = ["\\", '"', "#", "{", "}", "$", "@", "'", "`", "%", "u", "uu0022", "U0001F600", "x41", "N{DASH}", "101", "n", "協", "😀"];

const quotable = fc
  .oneof(fc.string({ unit: "grapheme", maxLength: 20 }), fc.array(fc.constantFrom(...MEANT), { maxLength: 12 }).map((parts) => parts.join("")))
  .filter(isQuotable);

/** Reads a string whose only escapes are of these characters. Each of the languages reads those so. */
function read(literal: string, escaped: string): string {
  const body = /^"(.*)"$/u.exec(literal)?.[1];
  if (body === undefined) throw new Error("it is not one string");
  let text = "";
  for (let place = 0; place < body.length; place += 1) {
    const character = body.charAt(place);
    if (character === '"') throw new Error("the string ends early");
    if (character !== "\\") {
      text += character;
      continue;
    }
    place += 1;
    const meant = body.charAt(place);
    if (meant === "" || !escaped.includes(meant)) throw new Error(`it escapes ${JSON.stringify(meant)}`);
    text += meant;
  }
  return text;
}

/** What Java makes of a file before it looks for strings: a backslash that an even number of them precedes begins a code. */
const javaUnescaped = (source: string): string =>
  source.replace(/(?<!\\)((?:\\\\)*)\\u+([0-9a-f]{4})/gi, (_, before: string, code: string) => before + String.fromCharCode(parseInt(code, 16)));

test("a program's string has only escapes that its languages share", () => {
  fc.assert(
    fc.property(quotable, (text) => {
      const literal = programQuoted(text);
      expect(read(literal, '\\"')).toBe(text);
      expect(javaUnescaped(literal)).toBe(literal);
    }),
    { numRuns: 2_000 },
  );
});

test("a string of Ruby runs no code", () => {
  fc.assert(
    fc.property(quotable, (text) => {
      const literal = rubyQuoted(text);
      expect(read(literal, '\\"#')).toBe(text);
      expect(literal.replaceAll(/\\./gu, "_")).not.toMatch(/#[{$@]/);
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ["#{`id`}", '"\\#{`id`}"'],
  ["\\#{x}", '"\\\\\\#{x}"'],
  ["##$0 #@a # C#", '"#\\#$0 \\#@a # C#"'],
])("%j becomes a string of Ruby", (text, literal) => {
  expect(rubyQuoted(text)).toBe(literal);
});

test("the check of Java's codes finds one", () => {
  expect(javaUnescaped('"\\u0022"')).toBe('"""');
  expect(javaUnescaped('"\\\\u0022"')).toBe('"\\\\u0022"');
  expect(javaUnescaped('"\\\\\\u0022"')).toBe('"\\\\""');
});
