// Tests of what the datasets' screens know: addresses, values, schemas, mapping, imports, comparison and live rows.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readAddress } from "../../lib/address";
import type { Fields } from "../../api/narrow";
import { canonical, fieldValue, kindsOf, readCell, textOf } from "./cells";
import { comparison, fieldDifferences, pathDifferences } from "./comparing";
import { conflictsOf, decided, movedRows } from "./conflicts";
import { NO_EDITS, newRow, type Edits } from "./edits";
import { filterOfTyped, typedOfFilter } from "./finding";
import { NO_PROGRESS, placedRow, runImport, type Known, type Progress } from "./importing";
import { arrived, isDeletion, later, liveFrom, merged } from "./live";
import { guessed, rowOf } from "./mapping";
import { copiedRows, pasted, pastedWords, textFields } from "./pasting";
import { misfitOf, schemasOf } from "./schemas";
import { pythonCode } from "./snippets";
import { datasetsUrl, datasetUrl, type DatasetState } from "./url";

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const name = text.filter((value) => value !== "" && value !== "." && value !== "..");
const state: fc.Arbitrary<DatasetState> = fc.record({ organization: name, project: name, name, version: text, compare: text, filter: text, row: text });

test("a dataset's address means that dataset", () => {
  fc.assert(
    fc.property(state, (one) => {
      const address = readAddress(datasetUrl.write(one));
      expect(address && datasetUrl.read(address)).toEqual(one);
      const { organization, project, filter, row } = one;
      const list = readAddress(datasetsUrl.write({ organization, project, filter, row }));
      expect(list && datasetsUrl.read(list)).toEqual({ organization, project, filter, row });
      expect(list && datasetUrl.read(list)).toBeNull();
    }),
  );
});

test("a value survives its editor", () => {
  const json = fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify(value)));
  fc.assert(
    fc.property(json, (value) => {
      const [kind = "json"] = kindsOf("input", value);
      expect(readCell("input", textOf(value, kind), kind, value)).toEqual({ value });
    }),
  );
  expect(readCell("tags", "a, b,,a", "tags", null)).toEqual({ value: ["a", "b"] });
  expect(readCell("metadata", "[1]", "json", null)).toEqual({ fault: "Metadata is an object or null." });
  expect(readCell("input", "  ", "json", { a: 1 })).toEqual({ value: null });
});

test("equal values have one canonical text", () => {
  expect(canonical({ a: 1, b: { d: 1, c: 2 } })).toBe(canonical({ b: { c: 2, d: 1 }, a: 1 }));
  expect(canonical([1, 2])).not.toBe(canonical([2, 1]));
});

test("words are searched and expressions filter, and both show as they were typed", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 12 }), (typed) => {
      expect(filterOfTyped(typedOfFilter(filterOfTyped(typed)))).toBe(filterOfTyped(typed));
    }),
  );
  expect(filterOfTyped("it's late")).toBe("search('it''s late')");
  expect(typedOfFilter("search('it''s late')")).toBe("it's late");
  expect(filterOfTyped("metadata.level = 2")).toBe("metadata.level = 2");
});

test("pasted text with tabs makes rows, and copied rows are pasted back", () => {
  const ids = ["1", "2", "3"];
  const take = () => ids.shift() ?? "x";
  expect(pasted("one", "input", take, new Set())).toEqual({ kind: "cell", text: "one" });
  expect(pasted('q1\ta1\n"q\n2"\t{"a":1}\n', "input", take, new Set())).toEqual({
    kind: "rows",
    rows: [
      { id: "1", values: { input: "q1", expected: "a1" } },
      { id: "2", values: { input: "q\n2", expected: { a: 1 } } },
    ],
  });
  const copied = copiedRows([["id", "input", "tags"], ["r1", "a\tb", "x, y"]]);
  expect(pasted(copied, "expected", take, new Set())).toEqual({ kind: "rows", rows: [{ id: "r1", values: { input: "a\tb", tags: ["x", "y"] } }] });
});

test("pasted numbers become numbers, except in columns that hold texts", () => {
  const texts = textFields([{ input: "q", expected: 4 }, { input: null, expected: null }]);
  expect([...texts]).toEqual(["input"]);
  const result = pasted("4\t4\n007\t1e400\n5\ttrue", "input", () => "n", texts);
  const rows = result.kind === "rows" ? result.rows : [];
  expect(rows.map(({ values }) => values)).toEqual([
    { input: "4", expected: 4 },
    { input: "007", expected: "1e400" },
    { input: "5", expected: true },
  ]);
  expect(pastedWords(rows, texts)).toBe(
    "3 rows pasted. Numbers, true and false were read as such in expected. Numbers stay texts in input, because the column holds texts.",
  );
});

test("columns are guessed by their names", () => {
  expect(Object.fromEntries(guessed(["id", "Question", "answer", "lang", "tags"]))).toEqual({ id: "id", Question: "input", answer: "expected", lang: "metadata", tags: "tags" });
  expect(guessed(["text", "label"]).get("text")).toBe("input");
  expect(guessed(["input.a", "input.b"]).get("input.b")).toBe("input");
});

test("a record becomes a row by its mapping", () => {
  const options = { isExact: false };
  expect(rowOf({ input: '{"q":1}', lang: "en", n: "3", tags: "a|b" }, guessed(["input", "lang", "n", "tags"]), options)).toEqual({
    input: { q: 1 },
    metadata: { lang: "en", n: "3" },
    tags: ["a", "b"],
  });
  expect(rowOf({ "input.a": "1", "input.b": "2" }, guessed(["input.a", "input.b"]), { isExact: true })).toEqual({ input: { a: 1, b: 2 } });
  expect(fieldValue("metadata", "x")).toEqual({ value: "x" });
});

test("a schema says what does not fit", () => {
  const schema = { type: "object", required: ["level"], properties: { level: { type: "integer", maximum: 2 }, lang: { enum: ["en"] } }, additionalProperties: false };
  expect(misfitOf(schema, { level: 1, lang: "en" })).toBeNull();
  expect(misfitOf(schema, {})).toBe('The value lacks "level".');
  expect(misfitOf(schema, { level: 3 })).toBe(".level is more than 2.");
  expect(misfitOf(schema, { level: 1.5 })).toBe(".level is number, not integer.");
  expect(misfitOf({ items: { $ref: "#/$defs/a" }, $defs: { a: { type: "string" } } }, ["x", 1])).toBe("[1] is number, not string.");
  expect(misfitOf({ anyOf: [{ $ref: "#" }, { $ref: "#" }] }, 1)).toBeTypeOf("object");
  expect(schemasOf({ __schemas: { input: { type: "string" }, other: {} } })).toEqual({ input: { type: "string" } });
  expect(schemasOf(null)).toEqual({});
});

test("two versions differ by added, removed and changed rows", () => {
  const found = comparison(new Map([["a", "1"], ["b", "1"], ["c", "1"]]), new Map([["a", "1"], ["b", "2"], ["d", "2"]]));
  expect(found.counts).toEqual({ added: 1, removed: 1, changed: 1 });
  expect(found.same).toBe(1);
  const row = newRow("a");
  expect(fieldDifferences({ ...row, input: { q: 1, l: [1, 2] } }, { ...row, input: { q: 1, l: [1, 3] } })[0]?.paths).toEqual([{ path: ".l[1]", before: 2, after: 3 }]);
});

test("equal values have no different paths, and others some", () => {
  const object = fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 2 }));
  fc.assert(
    fc.property(object, object, (a, b) => {
      expect(pathDifferences(a, structuredClone(a))).toEqual([]);
      expect(pathDifferences(a, b).length > 0).toBe(canonical(a) !== canonical(b));
    }),
  );
});

test("rows that others changed are conflicts, and each is decided", () => {
  const base = { ...newRow("a"), input: "old", transaction: "1" };
  const edits: Edits = { rows: new Map([["a", { base, values: { input: "mine" } }]]), added: [] };
  expect(movedRows(edits, new Map([["a", "1"]]))).toEqual([]);
  expect(movedRows(edits, new Map())).toEqual(["a"]);
  const theirs = { ...base, input: "theirs", transaction: "2" };
  const conflicts = conflictsOf(edits, ["a"], [theirs]);
  expect(conflicts[0]?.fields).toEqual(["input"]);
  expect(decided(edits, conflicts, new Map([["a", "theirs"]])).rows.size).toBe(0);
  expect(decided(edits, conflicts, new Map([["a", "mine"]])).rows.get("a")?.base).toBe(theirs);
  const gone = conflictsOf(edits, ["a"], []);
  expect(decided(edits, gone, new Map([["a", "mine"]]))).toMatchObject({ added: ["a"] });
});

test("live rows replace, come on top, and tell of deletions", () => {
  const row = (id: string, place: string, transaction: string) => ({ ...newRow(id), place, transaction });
  const read = [row("b", "p2", "10"), row("a", "p1", "10")];
  const live = arrived(liveFrom("10"), [row("a", "p1", "11"), row("c", "p3", "11"), row("z", "p0", "11")], "11", read);
  expect(merged(read, live).map(({ id, transaction }) => [id, transaction])).toEqual([["c", "11"], ["b", "10"], ["a", "11"]]);
  expect(isDeletion(live, [], "12")).toBe(true);
  expect(isDeletion(live, [row("a", "p1", "12")], "12")).toBe(false);
  expect(later("9", "10")).toBe("10");
});

const csv = (lines: readonly string[]): Blob => new Blob([lines.join("\n")]);
const plan = { format: "csv", mapping: guessed(["id", "input"]), options: { isExact: false }, by: "id", mode: "skip" } as const;

test("an import writes batches, names refused lines, and goes on after a failure", async () => {
  const lines = ["id,input", ...Array.from({ length: 1200 }, (_, index) => (index === 7 ? "bad" : `r${index},q${index}`)), "r1,again"];
  const batches: number[] = [];
  let failures = 0;
  let last: Progress = NO_PROGRESS;
  const isDone = await runImport(csv(lines), plan, new Map([["r3", "r3"]]), {
    send: (events: readonly Fields[]) => {
      if (failures === 0) return Promise.reject(new Error(`failure ${(failures += 1)}`));
      batches.push(events.length);
      const index = events.findIndex((event) => event["id"] === "r600");
      return Promise.resolve({ taken: 0, refused: index < 0 ? [] : [{ index, message: "refused" }] });
    },
    newId: () => "new",
    onProgress: (progress) => {
      last = progress;
    },
    mayGoOn: () => Promise.resolve(true),
    onFailure: () => Promise.resolve(true),
  });
  expect(isDone).toBe(true);
  expect(batches).toEqual([500, 500, 198]);
  expect(last).toMatchObject({ written: 1197, skipped: 2, replaced: 0 });
  expect(last.refused.map(({ line }) => line).sort((a, b) => a - b)).toEqual([9, 602]);
});

test("a cancelled import stops", async () => {
  const isDone = await runImport(csv(["id,input", "a,b"]), plan, new Map(), {
    send: () => Promise.reject(new Error("not called")),
    newId: () => "new",
    onProgress: () => undefined,
    mayGoOn: () => Promise.resolve(false),
    onFailure: () => Promise.resolve(false),
  });
  expect(isDone).toBe(false);
});

test("duplicates are skipped, replaced or added", () => {
  const known = (): Known => new Map([[canonical("q"), "old"]]);
  const row = { input: "q", id: "own" };
  expect(placedRow(row, { by: "input", mode: "skip" }, known(), () => "new")).toBeNull();
  expect(placedRow(row, { by: "input", mode: "replace" }, known(), () => "new")).toEqual({ event: { input: "q", id: "old" }, isReplacing: true });
  expect(placedRow(row, { by: "input", mode: "add" }, known(), () => "new")?.event["id"]).toBe("own");
  expect(placedRow({ input: "n" }, { by: "input", mode: "skip" }, known(), () => "new")?.event["id"]).toBe("new");
});

test("copied code quotes names", () => {
  expect(pythonCode({ origin: "", project: 'a"b', name: "c", version: "7" })).toContain('project="a\\"b", name="c", version="7"');
  expect(NO_EDITS.rows.size).toBe(0);
});
