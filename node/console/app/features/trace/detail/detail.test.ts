// Tests of what the detail of a span reads and writes: errors, metrics, history, filters, images and copied code.
import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { RowEvent } from "../../../api/history";
import type { SpanPlace } from "../../../api/spans";
import { parseJson } from "../../../lib/json";
import { asCurl, asPython, asTypeScript, callAsPython, modelCallOf, queryOf } from "./actions";
import { attachmentsOf } from "./attachments";
import { transactionAt } from "../../../lib/version";
import { historyOf, scoreEvents } from "./changes";
import { readError } from "./errors";
import { editedText, readExpected } from "./expected";
import { expressionOf, tagExpression } from "./filter";
import { blobIn, dataIn, imageType } from "./images";
import { metricsOf } from "./metrics";

test.each([
  ["boom", "boom", ""],
  ["TypeError: x\n    at f (a.js:1:2)\n    at g", "TypeError: x", "    at f (a.js:1:2)\n    at g"],
  ['Traceback (most recent call last):\n  File "a.py", line 3\nValueError: x', "ValueError: x", 'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: x'],
  ['ValueError: x\n\nTraceback (most recent call last):\n  File "a.py", line 3', "ValueError: x", 'Traceback (most recent call last):\n  File "a.py", line 3'],
  [{ message: "boom", stack: "at f" }, "boom", "at f"],
  [{ code: 1 }, '{\n  "code": 1\n}', ""],
])("the error %j has its message and its stack", (error, message, stack) => {
  expect(readError(error)).toEqual({ message, stack });
});

test("metrics have units, and the duration stands first", () => {
  const metrics = { start: 0, end: 6.04, prompt_tokens: 12345, time_to_first_token: 0.42, estimated_cost: 0.00081, custom: 0.5 };
  expect(metricsOf({ metrics }, 1, "utc").map(({ name, text }) => `${name}: ${text}`)).toEqual([
    "Duration: 6.0 s",
    "Start: 1970-01-01 00:00:00.000",
    "End: 1970-01-01 00:00:06.040",
    "Time to first token: 420 ms",
    "Prompt tokens: 12,345",
    "Cost: $0.00081",
    "Custom: 0.5",
  ]);
  expect(metricsOf({ metrics: null }, 0.5, "utc").map(({ text }) => text)).toEqual(["$0.5"]);
});

const event = (transaction: string, action: string, columns: Readonly<Record<string, unknown>>): RowEvent => ({
  transaction,
  action,
  source: "app",
  userId: `user ${transaction}`,
  columns,
});

test("history says what each write changed", () => {
  const events = [
    event("3", "merge", { scores: { Good: null, Tone: 0.5 } }),
    event("2", "merge", { scores: { Good: 0.5 }, expected: "y", tags: null }),
    event("1", "upsert", { input: { a: 1 }, output: "x", scores: null }),
  ];
  const changes = historyOf(events).map((entry) => entry.changes);
  expect(changes[0]).toEqual([
    { field: "scores.Good", before: 0.5, after: null },
    { field: "scores.Tone", before: undefined, after: 0.5 },
  ]);
  expect(changes[1]).toEqual([
    { field: "expected", before: null, after: "y" },
    { field: "scores.Good", before: undefined, after: 0.5 },
  ]);
  expect(changes[2]?.map(({ field }) => field)).toEqual(["input", "output"]);
  expect([...scoreEvents(events)].map(([name, { transaction }]) => `${name} ${transaction}`)).toEqual(["Good 3", "Tone 3"]);
});

test("comments stand among the writes, those that were sent a moment ago too", () => {
  const at = (seconds: number): string => transactionAt(new Date(seconds * 1000));
  const events = [event(at(300), "merge", { tags: ["x"] }), event(at(100), "upsert", { input: 1 })];
  const comment = { id: "c", _xact_id: at(200), comment: { text: "Hello" }, source: "app", metadata: { user_id: "ann" } };
  const sent = { created: new Date(400_000).toISOString(), comment: { text: "Now" } };
  const entries = historyOf(events, [comment, sent]);
  expect(entries.map((entry) => entry.event.action)).toEqual(["comment", "merge", "comment", "upsert"]);
  expect(entries[2]).toMatchObject({ event: { userId: "ann", source: "app" }, changes: [{ field: "comment", after: "Hello" }] });
});

test("the expected output is text or JSON, and is read as it was written", () => {
  expect(readExpected("  ")).toEqual({ value: null, fault: null });
  expect(readExpected("yes, it is")).toEqual({ value: "yes, it is", fault: null });
  expect(readExpected('{"a":')?.fault).not.toBeNull();
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), fc.string()), (value) => {
      if (typeof value === "string" && value.trim() === "" && value !== "") return;
      expect(readExpected(editedText(value)).value).toEqual(parseJson(JSON.stringify(value)));
    }),
  );
});

test("values that are clicked become conditions", () => {
  expect(expressionOf(["metadata", "a b", 0], "it's", false)).toBe("metadata.`a b`[0] = 'it''s'");
  expect(expressionOf(["metadata", "n"], parseJson("12345678901234567890"), false)).toBe("metadata.n = 12345678901234567890");
  expect(expressionOf(["input"], null, true)).toBe("input IS NOT NULL");
  expect(expressionOf(["input"], {}, false)).toBeNull();
  expect(expressionOf(["metadata", "n"], 1, true)).toBe("metadata.n <!=> 1");
  expect(tagExpression("a'b", false)).toBe("tags INCLUDES 'a''b'");
});

test("only images that cannot hold a script are shown", () => {
  const base64 = (bytes: readonly number[] | string): string =>
    btoa(typeof bytes === "string" ? bytes : String.fromCharCode(...bytes));
  const png = [0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10];
  expect(imageType(Uint8Array.from(png))).toBe("image/png");
  expect(blobIn("image", `data:image/svg+xml;base64,${base64(png)}`)?.type).toBe("image/png");
  expect(blobIn("image", `data:image/png;base64,${base64("<svg onload=x>")}`)).toBeNull();
  expect(blobIn("image", `data:image/svg+xml;base64,${base64("<svg>")}`)).toBeNull();
  expect(blobIn("image", "data:image/png;base64,***")).toBeNull();
  expect(blobIn("audio", `data:text/html;base64,${base64("<p>")}`)).toBeNull();
  expect(blobIn("file", `data:text/html;base64,${base64("<p>")}`)?.type).toBe("application/octet-stream");
  expect(dataIn("data:audio/mp3;x=1;base64,QUE=")?.type).toBe("audio/mp3");
});

test("attachments are found once, wherever they stand", () => {
  const one = { type: "braintrust_attachment", key: "k", filename: "a.png", content_type: "image/png" };
  const row = { input: [{ a: one }, one], output: { type: "external_attachment", url: "s3://b", filename: "b", content_type: "" } };
  expect(attachmentsOf(row).map(({ key, url }) => key + url)).toEqual(["k", "s3://b"]);
});

const place = (root: string): SpanPlace => ({ organization: "o", source: { kind: "project_logs", id: "p" }, root, version: "" });
const ORIGIN = "http://127.0.0.1:8000";

/** Runs a copied command in a shell whose curl prints what it is given. */
const bodyInShell = (command: string): string =>
  execFileSync("/bin/sh", ["-c", `curl() { for last; do :; done; printf %s "$last"; }\n${command}`], { encoding: "utf8" });

test("copied code keeps texts of any letters", () => {
  const evil = `a'; rm -rf / #"$(id)\`id\`\\ \n\u202e${"\u{1f600}"}`;
  const { query } = JSON.parse(bodyInShell(asCurl(ORIGIN, place(evil), evil)));
  expect(query).toBe(queryOf(place(evil), evil));
  for (const code of [asCurl, asPython, asTypeScript].map((write) => write(ORIGIN, place(evil), evil))) {
    expect(code).not.toMatch(/[\u202e\u0000-\u0009]/);
    expect(code).toContain("BRAINTRUST_API_KEY");
  }
});

test("a model call is copied with its parameters, and only if it is one", () => {
  const messages = [{ role: "user", content: "Hi" }];
  const row = { input: messages, metadata: { model: "m", temperature: 0, secret: "x" } };
  expect(modelCallOf(row)).toEqual({ model: "m", messages, temperature: 0 });
  expect(modelCallOf({ input: "Hi", metadata: { model: "m" } })).toBeNull();
  expect(modelCallOf({ input: messages, metadata: null })).toBeNull();
  expect(callAsPython(ORIGIN, { model: "m", messages })).toContain("chat/completions");
});
