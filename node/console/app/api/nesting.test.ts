// Tests nesting against the plain definition, on graphs with circles too.
import fc from "fast-check";
import { expect, test } from "vitest";
import { closesCircle, innerOf, outerOf, reached, type Nested } from "./nesting";

const NAMES = ["a", "b", "c", "d", "e"];

const graphs = fc
  .array(fc.subarray(NAMES), { minLength: NAMES.length, maxLength: NAMES.length })
  .map((inner): readonly Nested[] => NAMES.map((id, index) => ({ id, inner: inner[index] ?? [] })));

/** Everything that is reached, by repeating the steps until nothing is new. */
function closure(start: string, all: readonly Nested[]): ReadonlySet<string> {
  const found = new Set<string>([start]);
  for (let size = 0; size < found.size; ) {
    size = found.size;
    for (const { id, inner } of all) if (found.has(id)) inner.forEach((one) => found.add(one));
  }
  return found;
}

test("what is reached is the closure, and each way leads there step by step", () => {
  fc.assert(
    fc.property(graphs, fc.constantFrom(...NAMES), (all, start) => {
      const next = innerOf(all);
      const ways = reached(start, next);
      expect(new Set([start, ...ways.keys()])).toEqual(closure(start, all));
      for (const [end, way] of ways) {
        expect(way.at(-1)).toBe(end);
        [start, ...way].reduce((from, to) => {
          expect(next.get(from)).toContain(to);
          return to;
        });
      }
    }),
  );
});

test("outside is inside turned around", () => {
  fc.assert(
    fc.property(graphs, (all) => {
      const [inner, outer] = [innerOf(all), outerOf(all)];
      for (const a of NAMES) for (const b of NAMES) expect(outer.get(b)?.includes(a) ?? false).toBe(inner.get(a)?.includes(b));
    }),
  );
});

test("a circle is closed exactly by what already has the other in it", () => {
  const next = innerOf([
    { id: "a", inner: ["b"] },
    { id: "b", inner: ["c"] },
    { id: "c", inner: [] },
  ]);
  expect(closesCircle("a", "c", next)).toBe(true);
  expect(closesCircle("a", "a", next)).toBe(true);
  expect(closesCircle("c", "a", next)).toBe(false);
});
