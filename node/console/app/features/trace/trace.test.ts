// Tests the address of a trace, the spans that arrive while it runs, and what keys do in its tree.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readHead } from "../../api/spans";
import { readAddress } from "../../lib/address";
import { TRACE_LENSES } from "../../lib/trace";
import { pressed } from "./parts/treeKeys";
import { joined, newestOf } from "./queries";
import type { Line } from "./tree/lines";
import { traceDefaults, traceUrl } from "./url";

const text = fc.string({ unit: "grapheme" });
const name = text.filter((drawn) => drawn !== "");

test("the address of a trace says all of its state", () => {
  fc.assert(
    fc.property(name, name, name, text, text, text, text, fc.constantFrom(...TRACE_LENSES), (organization, project, root, span, tab, find, version, lens) => {
      const state = { ...traceDefaults(organization, project, root), view: { span, tab, find, lens }, version };
      const address = readAddress(traceUrl.write(state));
      expect(address && traceUrl.read(address)).toEqual(state);
    }),
  );
});

test("defaults are not written", () => {
  expect(traceUrl.write(traceDefaults("acme", "bot", "t1"))).toBe("/app/acme/p/bot/trace/t1");
});

const head = (spanId: string, transaction: string, spanName = "") =>
  readHead({ id: spanId, span_id: spanId, _xact_id: transaction, span_attributes: { name: spanName } });

test("a span that is written again stands where it stood, and new ones come last", () => {
  const spans = joined([head("a", "9"), head("b", "9")], [head("c", "10"), head("a", "10", "renamed")]);
  expect(spans.map((span) => [span.spanId, span.name])).toEqual([["a", "renamed"], ["b", ""], ["c", ""]]);
  expect(newestOf(spans)).toBe("10");
  expect(newestOf([])).toBe("");
});

const line = (span: number, depth: number, hasBelow = false, isFolded = false): Line => ({
  span,
  others: [],
  depth,
  begin: 0,
  end: 1,
  shortest: 1,
  longest: 1,
  hasError: false,
  hasBelow,
  isFolded,
});

test.each([
  ["ArrowDown", 1, ["select 2"]],
  ["j", 3, ["select 3"]],
  ["k", 0, ["select 0"]],
  ["End", 0, ["select 3"]],
  ["Home", 3, ["select 0"]],
  ["PageDown", 0, ["select 2"]],
  ["ArrowRight", 0, ["select 1"]],
  ["ArrowRight", 2, ["fold 2 false"]],
  ["l", 1, []],
  ["ArrowLeft", 1, ["select 0"]],
  ["h", 0, ["fold 0 true"]],
  ["x", 0, []],
])("%s from line %d does %j", (key, selected, expected) => {
  const done: string[] = [];
  const lines = [line(0, 0, true), line(1, 1), line(2, 1, true, true), line(3, 1)];
  const tree = {
    lines,
    selected,
    select: (span: number) => void done.push(`select ${span}`),
    fold: (folded: Line, isFolded: boolean) => void done.push(`fold ${folded.span} ${isFolded}`),
  };
  expect(pressed(key, tree, 2)).toBe(key !== "x");
  expect(done).toEqual(expected);
});
