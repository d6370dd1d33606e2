// Tests how rows that come later enter the list.
import { expect, test } from "vitest";
import { readLogRow } from "../../api/rows";
import { arrived, isLater, keyOf, merged, released, tailFrom } from "./tail";

const row = (id: string, name = "chat") =>
  readLogRow({ id, span_id: id, root_span_id: id, _xact_id: "1", span_attributes: { name } }, 0);

const read = [row("b"), row("a")];
const known = new Set(["a", "b"]);
const ids = (rows: readonly { readonly id: string }[]): readonly string[] => rows.map((one) => one.id);

test("new rows wait, and are shown when somebody wants them", () => {
  const one = arrived(tailFrom("5"), [row("c")], "7", known, "traces", false);
  const two = arrived(one, [row("d")], "9", known, "traces", false);
  expect(two.last).toBe("9");
  expect(ids(two.waiting)).toEqual(["d", "c"]);
  expect(ids(merged(read, two, "traces"))).toEqual(["b", "a"]);
  expect(ids(merged(read, released(two), "traces"))).toEqual(["d", "c", "b", "a"]);
});

test("at the top new rows are shown at once", () => {
  expect(ids(merged(read, arrived(tailFrom("5"), [row("c")], "7", known, "traces", true), "traces"))).toEqual(["c", "b", "a"]);
});

test("a changed row takes its place again, and nothing comes twice", () => {
  const once = arrived(tailFrom("5"), [row("c"), row("a", "changed")], "7", known, "traces", false);
  const twice = arrived(once, [row("c", "longer")], "8", known, "traces", true);
  const rows = merged(read, twice, "traces");
  expect(ids(rows)).toEqual(["c", "b", "a"]);
  expect(rows.map((one) => one.name)).toEqual(["longer", "chat", "changed"]);
});

test("a question without an answer changes nothing", () => {
  const tail = tailFrom("5");
  expect(arrived(tail, [], "5", known, "traces", true)).toBe(tail);
  expect(merged(read, tail, "traces")).toBe(read);
});

test("transactions are compared as numbers", () => {
  expect(isLater("10", "9")).toBe(true);
  expect(isLater("9", "10")).toBe(false);
  expect(isLater("9", "9")).toBe(false);
});

test("a row is a trace or a span", () => {
  const span = readLogRow({ id: "i", span_id: "s", root_span_id: "r" }, 0);
  expect(keyOf(span, "traces")).toBe("r");
  expect(keyOf(span, "spans")).toBe("i");
});
