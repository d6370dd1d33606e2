// Tests the tree of a trace: its order, its lines, the critical path, and where bars stand.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { SpanHead } from "../../../api/spans";
import { miniBars, momentAt, panned, pathBars, shareOf, ticksOf, wholeOf, zoomed } from "./bars";
import { flameBars, LANES_MAX, lanesOf } from "./flame";
import { foldedBelow, linesOf, nextOf, NOTHING_FOLDED, unfoldedTo } from "./lines";
import { criticalPath, NONE, treeOf } from "./model";

const EMPTY: SpanHead = {
  id: "",
  spanId: "",
  parents: [],
  isRoot: false,
  name: "",
  type: "",
  start: null,
  end: null,
  created: "1970-01-01T00:00:00Z",
  tokens: null,
  cost: null,
  firstToken: null,
  model: "",
  scores: [],
  tags: [],
  hasError: false,
  transaction: "1",
};

const span = (spanId: string, parent: string | null, start: number, end: number, more: Partial<SpanHead> = {}): SpanHead => ({
  ...EMPTY,
  id: spanId,
  spanId,
  parents: parent === null ? [] : [parent],
  isRoot: parent === null,
  start,
  end,
  ...more,
});

const SPANS = [
  span("b", "root", 3, 5),
  span("root", null, 0, 6),
  span("a", "root", 1, 3),
  span("a1", "a", 1, 2, { hasError: true }),
  span("lost", "gone", 2, 4),
];

const names = (spans: readonly SpanHead[]): readonly string[] => {
  const tree = treeOf(spans);
  return [...tree.order].map((index) => `${"  ".repeat(tree.depth[index] ?? 0)}${tree.spans[index]?.spanId ?? ""}`);
};

test("spans stand below their parents in the order of their begin, and those without a parent last", () => {
  expect(names(SPANS)).toEqual(["root", "  a", "    a1", "  b", "lost"]);
  const tree = treeOf(SPANS);
  expect([...tree.orphans].map((index) => tree.spans[index]?.spanId)).toEqual(["lost"]);
  expect([tree.first, tree.last, tree.errors]).toEqual([0, 6, 1]);
  expect(tree.spans[tree.root]?.spanId).toBe("root");
});

test("a span without an end lasts to the end of the trace so far", () => {
  const tree = treeOf([span("root", null, 0, 4), { ...span("a", "root", 1, 1), end: null }]);
  const index = tree.indexOf.get("a") ?? NONE;
  expect([tree.end[index], tree.isOpen[index]]).toEqual([4, 1]);
});

test("a review does not lengthen the trace that was over before it", () => {
  const review = { ...span("review", "root", 0, 0), type: "review", start: null, end: null, created: "1970-01-01T01:00:00Z" };
  const tree = treeOf([span("root", null, 0, 4), review]);
  const index = tree.indexOf.get("review") ?? NONE;
  expect([tree.last, tree.begin[index], tree.end[index]]).toEqual([4, 4, 4]);
});

const anySpans = fc
  .array(fc.record({ parent: fc.nat(30), start: fc.nat(100), length: fc.nat(50) }), { maxLength: 30 })
  .map((drawn) => drawn.map((one, index) => span(`s${index}`, `s${one.parent}`, one.start, one.start + one.length)));

test("every span is in the tree once, below its parent, also with circles and missing parents", () => {
  fc.assert(
    fc.property(anySpans, (spans) => {
      const tree = treeOf(spans);
      expect([...tree.order].sort((one, other) => one - other)).toEqual(spans.map((_, index) => index));
      tree.parent.forEach((parent, index) => {
        if (parent === NONE) return;
        const from = tree.place[parent] ?? 0;
        const at = tree.place[index] ?? 0;
        expect(at > from && at <= from + (tree.below[parent] ?? 0)).toBe(true);
        expect(tree.depth[index]).toBe((tree.depth[parent] ?? 0) + 1);
      });
    }),
  );
});

test("30,000 spans and a depth of 5,000 take no time to speak of", () => {
  const many = Array.from({ length: 30_000 }, (_, index) =>
    span(`s${index}`, index === 0 ? null : `s${Math.floor((index - 1) / 3)}`, index, index + 1),
  );
  const deep = Array.from({ length: 5000 }, (_, index) => span(`d${index}`, index === 0 ? null : `d${index - 1}`, 0, 9));
  const lost = Array.from({ length: 30_000 }, (_, index) => span(`l${index}`, `gone${index}`, index, index + 1));
  expect(treeOf(many).order).toHaveLength(30_000);
  expect(Math.max(...treeOf(deep).depth)).toBe(4999);
  expect(linesOf(treeOf(lost), NOTHING_FOLDED)).toHaveLength(1);
  expect(criticalPath(treeOf(many)).size).toBeGreaterThan(0);
});

test("folding hides what is below, a level can be chosen, and a hidden span is found again", () => {
  const tree = treeOf(SPANS);
  const shown = (folded: ReadonlySet<number>): readonly (string | undefined)[] =>
    linesOf(tree, { ...NOTHING_FOLDED, folded }).map((line) => tree.spans[line.span]?.spanId);
  expect(shown(new Set())).toEqual(["root", "a", "a1", "b", "lost"]);
  expect(shown(foldedBelow(tree, 0))).toEqual(["root", "lost"]);
  expect(shown(foldedBelow(tree, 1))).toEqual(["root", "a", "b", "lost"]);
  const a1 = tree.indexOf.get("a1") ?? NONE;
  expect(shown(unfoldedTo(tree, { ...NOTHING_FOLDED, folded: foldedBelow(tree, 0) }, a1).folded)).toContain("a1");
});

test("a filter leaves matches and what is above them", () => {
  const tree = treeOf(SPANS);
  const only = new Set([tree.indexOf.get("a1") ?? NONE]);
  expect(linesOf(tree, { ...NOTHING_FOLDED, only }).map((line) => tree.spans[line.span]?.spanId)).toEqual(["root", "a", "a1"]);
});

test("many equal leaves are one line until they are spread", () => {
  const leaves = Array.from({ length: 60 }, (_, index) => span(`l${index}`, "root", index, index + 1, { name: "tool" }));
  const tree = treeOf([span("root", null, 0, 60), ...leaves, span("end", "root", 61, 62)]);
  const lines = linesOf(tree, NOTHING_FOLDED);
  expect(lines).toHaveLength(3);
  expect(lines[1]?.others).toHaveLength(59);
  const spread = new Set([lines[1]?.span ?? 0]);
  expect(linesOf(tree, { ...NOTHING_FOLDED, spread })).toHaveLength(62);
  const hidden = tree.indexOf.get("l30") ?? NONE;
  expect(unfoldedTo(tree, NOTHING_FOLDED, hidden).spread).toEqual(spread);
});

test("the next span is looked for in the tree's order, around its end", () => {
  const tree = treeOf(SPANS);
  const [a1, b, root] = ["a1", "b", "root"].map((id) => tree.indexOf.get(id) ?? NONE);
  expect(nextOf(tree, [a1 ?? 0, b ?? 0], root ?? 0, 1)).toBe(a1);
  expect(nextOf(tree, [a1 ?? 0, b ?? 0], b ?? 0, 1)).toBe(a1);
  expect(nextOf(tree, [a1 ?? 0, b ?? 0], a1 ?? 0, -1)).toBe(b);
  expect(nextOf(tree, [], NONE, 1)).toBeNull();
});

test("the critical path has what was waited for", () => {
  const tree = treeOf([...SPANS, span("side", "root", 3, 3.5)]);
  const path = [...criticalPath(tree)].map((index) => tree.spans[index]?.spanId).sort();
  expect(path).toEqual(["a", "a1", "b", "root"]);
});

test("a window stays within the whole, and zooming keeps the moment under the pointer", () => {
  const whole = wholeOf(treeOf(SPANS));
  const window = zoomed(whole, whole, 3, 0.5);
  expect(shareOf(window, 3)).toBeCloseTo(shareOf(whole, 3));
  expect(momentAt(window, shareOf(window, 2.5))).toBeCloseTo(2.5);
  expect(panned(window, whole, 10).to).toBe(6);
  expect(zoomed(window, whole, 3, 100)).toEqual(whole);
});

test("ticks are round and within the window", () => {
  expect(ticksOf({ from: 10, to: 16 }, 10, 6)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(ticksOf({ from: 10, to: 10.00045 }, 10, 4).length).toBeLessThanOrEqual(8);
});

test("the overview keeps the longest bar of a pixel, and every error", () => {
  const bars = miniBars(treeOf(SPANS), 60, 3);
  expect(bars).toContainEqual({ x: 0, width: 60, level: 0, hasError: false });
  expect(bars.some((bar) => bar.hasError)).toBe(true);
});

test("a group says when its first span begins, when its last ends, and how long they are", () => {
  const leaves = Array.from({ length: 60 }, (_, index) => span(`l${index}`, "root", index, index + 1 + index / 10, { name: "tool" }));
  const line = linesOf(treeOf([span("root", null, 0, 60), ...leaves]), NOTHING_FOLDED)[1];
  expect([line?.begin, line?.end, line?.shortest, line?.hasError]).toEqual([0, 65.9, 1, false]);
  expect(line?.longest).toBeCloseTo(6.9);
});

test("a span is unfolded to without a change if it is shown already", () => {
  const tree = treeOf(SPANS);
  expect(unfoldedTo(tree, NOTHING_FOLDED, tree.indexOf.get("a1") ?? NONE)).toBe(NOTHING_FOLDED);
});

test("whatever is folded, the lines are in the tree's order and a span is shown after it was unfolded to", () => {
  fc.assert(
    fc.property(anySpans, fc.array(fc.nat(29)), fc.nat(29), (spans, folded, sought) => {
      const tree = treeOf(spans);
      if (tree.order.length === 0) return;
      const span = sought % tree.order.length;
      const folding = { ...NOTHING_FOLDED, folded: new Set(folded) };
      const places = linesOf(tree, folding).map((line) => tree.place[line.span] ?? 0);
      expect(places).toEqual([...places].sort((one, other) => one - other));
      expect(linesOf(tree, unfoldedTo(tree, folding, span)).some((line) => line.span === span)).toBe(true);
    }),
  );
});

test("siblings are numbered from 1", () => {
  const tree = treeOf(SPANS);
  const [a, b, root] = ["a", "b", "root"].map((id) => tree.indexOf.get(id) ?? NONE);
  expect([tree.sibling[a ?? 0], tree.sibling[b ?? 0], tree.siblings[a ?? 0], tree.siblings[root ?? 0]]).toEqual([1, 2, 2, 2]);
});

test("in the flame graph spans stand below their parents, and no two of a lane overlap", () => {
  fc.assert(
    fc.property(anySpans, (spans) => {
      const tree = treeOf(spans);
      const lanes = lanesOf(tree);
      tree.parent.forEach((parent, index) => {
        const isInside = parent !== NONE && (tree.begin[parent] ?? 0) <= (tree.begin[index] ?? 0);
        if (isInside && (lanes[index] ?? 0) < LANES_MAX) expect(lanes[index]).toBeGreaterThan(lanes[parent] ?? 0);
      });
      const ends = new Map<number, number>();
      const byBegin = [...tree.order].sort((one, other) => (tree.begin[one] ?? 0) - (tree.begin[other] ?? 0));
      for (const index of byBegin.filter((one) => (tree.end[one] ?? 0) > (tree.begin[one] ?? 0))) {
        const lane = lanes[index] ?? 0;
        if (lane < LANES_MAX) expect(ends.get(lane) ?? 0).toBeLessThanOrEqual(tree.begin[index] ?? 0);
        ends.set(lane, Math.max(ends.get(lane) ?? 0, tree.end[index] ?? 0));
      }
    }),
  );
});

test("the flame graph has a bar of each span that is in the window", () => {
  const tree = treeOf(SPANS);
  const { bars, isCut } = flameBars(tree, lanesOf(tree), { from: 0, to: 2.5 });
  expect(bars.map((bar) => tree.spans[bar.span]?.spanId).sort()).toEqual(["a", "a1", "lost", "root"]);
  expect(isCut).toBe(false);
});

test("the overview says where the critical path is at work", () => {
  const tree = treeOf(SPANS);
  expect(pathBars(tree, criticalPath(tree), 60)).toEqual([{ x: 10, width: 10 }, { x: 30, width: 20 }]);
});

test("30,000 spans are put in order and in lines within the time of a few frames", () => {
  const many = Array.from({ length: 30_000 }, (_, index) =>
    span(`s${index}`, index === 0 ? null : `s${Math.floor((index - 1) / 3)}`, index, index + 1, { name: `n${index % 7}` }),
  );
  const tree = treeOf(many);
  expect(linesOf(tree, NOTHING_FOLDED).length).toBe(30_000);
  expect(lanesOf(tree)).toHaveLength(30_000);
});
