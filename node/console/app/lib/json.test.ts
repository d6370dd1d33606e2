// Tests that JSON is read and written without a loss.
import fc from "fast-check";
import { expect, test } from "vitest";
import { Exact, numeric, parseJson, printJson } from "./json";

test("what is printed is read as the same value", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(JSON.parse(printJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      expect(printJson(value, 0)).toBe(JSON.stringify(value));
      expect(printJson(value)).toBe(JSON.stringify(value, null, 2));
    }),
  );
});

const numbers = fc.oneof(
  fc.bigInt().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.tuple(fc.nat(), fc.nat()).map(([whole, rest]) => `${whole}.${rest}0`),
  fc.tuple(fc.nat(9), fc.integer({ min: -400, max: 400 })).map(([digit, exponent]) => `${digit}E${exponent}`),
  fc.constant("-0"),
);

test("numbers keep their digits", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.string(), numbers)), (pairs) => {
      const text = `[${pairs.map(([key, number]) => `{${JSON.stringify(key)}:${number}}`).join(",")}]`;
      expect(printJson(parseJson(text), 0)).toBe(text);
    }),
  );
});

test("strings are no numbers, and keys are only keys", () => {
  const text = String.raw`{"__proto__":"1e3","a\"b\\":[12345678901234567890,"\\",true,null,{}],"constructor":[]}`;
  expect(printJson(parseJson(text), 0)).toBe(text);
  expect(parseJson("12345678901234567890")).toEqual(new Exact("12345678901234567890"));
  expect(numeric(parseJson("1.50"))).toBe(1.5);
});

test("depth is no limit", () => {
  const text = `${"[".repeat(50_000)}1.0${"]".repeat(50_000)}`;
  expect(printJson(parseJson(text), 0)).toBe(text);
});

test.each(["{", "[1,]", "01", "", "nul"])("%j is refused", (text) => {
  expect(() => parseJson(text)).toThrow(SyntaxError);
});
