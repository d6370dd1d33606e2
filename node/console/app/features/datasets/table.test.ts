// Tests of the readers of files: whatever the parts in which a text comes, the same records are read.
import fc from "fast-check";
import { expect, test } from "vitest";
import { createReader, formatOf, type FileRecord, type Format } from "./records";
import { createTable, delimiterOf, type TableRecord } from "./table";

const cell = fc.string({ unit: fc.constantFrom("a", "ü", ",", ";", "\t", '"', "\n", "\r\n", " ", "x"), maxLength: 6 });
const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
const written = (text: string, always: boolean): string => (always || /[",;\t\r\n]/.test(text) || text === "" ? quoted(text) : text);

/** Cuts a text at some places. */
function parts(text: string, cuts: readonly number[]): readonly string[] {
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((start, index) => text.slice(start, places[index] ?? text.length));
}

function read(delimiter: string, chunks: readonly string[]): readonly TableRecord[] {
  const table = createTable(delimiter);
  return [...chunks.flatMap((chunk) => table.push(chunk)), ...table.end()];
}

test("a table that was written is read back, in whatever parts it comes", () => {
  const table = fc.array(fc.array(cell, { minLength: 1, maxLength: 4 }), { maxLength: 5 });
  const cuts = fc.array(fc.nat(200), { maxLength: 6 });
  fc.assert(
    fc.property(table, cuts, fc.constantFrom(",", ";", "\t"), fc.constantFrom("\n", "\r\n", "\r"), fc.boolean(), (rows, at, delimiter, end, always) => {
      const text = rows.map((row) => row.map((one) => written(one, always)).join(delimiter)).join(end);
      expect(read(delimiter, parts(text, at)).map(({ cells }) => cells)).toEqual(rows);
    }),
    { numRuns: 500 },
  );
});

test("a record has the line at which it starts", () => {
  const text = 'a,b\r\n"1\r\n2",3\r\n\r\n4,5\n6,7';
  for (let cut = 0; cut <= text.length; cut += 1) {
    const records = read(",", [text.slice(0, cut), text.slice(cut)]);
    expect(records.map(({ line }) => line), `cut at ${cut}`).toEqual([1, 2, 5, 6]);
  }
});

test("the delimiter is that of the first line", () => {
  expect(delimiterOf("a;b;c\n1,2;3")).toBe(";");
  expect(delimiterOf('"a,b,c"\tb')).toBe("\t");
  expect(delimiterOf("a")).toBe(",");
});

const fields = fc.dictionary(fc.string({ maxLength: 4 }).filter((key) => key !== "__proto__"), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 });

function records(format: Format, chunks: readonly string[]): readonly FileRecord[] {
  const reader = createReader(format, chunks.join("").slice(0, 1000));
  return [...chunks.flatMap((chunk) => reader.push(chunk)), ...reader.end()];
}

test("JSON and JSON lines are read back, in whatever parts they come", () => {
  const cuts = fc.array(fc.nat(400), { maxLength: 6 });
  fc.assert(
    fc.property(fc.array(fields, { maxLength: 4 }), cuts, fc.boolean(), (objects, at, isPretty) => {
      const plain = objects.map((one): unknown => JSON.parse(JSON.stringify(one)));
      const json = JSON.stringify(objects, null, isPretty ? 2 : 0);
      const lines = objects.map((one) => JSON.stringify(one)).join("\n");
      const spaced = objects.map((one) => JSON.stringify(one, null, 2)).join("\n");
      for (const [format, text] of [["json", json], ["jsonl", lines], ["json", spaced]] as const) {
        expect(records(format, parts(text, at)).map((one) => ("fields" in one ? one.fields : one.fault))).toEqual(plain);
      }
    }),
    { numRuns: 300 },
  );
});

test("faults have their lines", () => {
  expect(records("jsonl", ['{"a":1}\n{"a":\n{"a":2}\n'])).toEqual([
    { line: 1, fields: { a: 1 } },
    { line: 2, fault: "The text ends too early. Column 6." },
    { line: 3, fields: { a: 2 } },
  ]);
  expect(records("csv", ["input,expected\n1,2\n3\n4,5\n"])).toMatchObject([{ line: 2 }, { line: 3, fault: "This line has 1 cell, and the head has 2." }, { line: 4 }]);
  expect(records("csv", ['input\n"a'])).toEqual([{ line: 2, fault: "The quotes that open here are never closed." }]);
  expect(records("json", ['[{"a":1},\n{"a":'])).toEqual([{ line: 1, fields: { a: 1 } }, { line: 2, fault: "The object that starts here has no end." }]);
});

test("the format of a file is recognized", () => {
  expect(formatOf("a.csv", "x,y\n1,2")).toBe("csv");
  expect(formatOf("a.txt", "x\ty\n")).toBe("tsv");
  expect(formatOf("pasted text", '{"a":1}\n{"a":2}')).toBe("jsonl");
  expect(formatOf("a.json", '\ufeff [\n{}]')).toBe("json");
  expect(formatOf("a.json", '{\n"a":1}')).toBe("json");
});
