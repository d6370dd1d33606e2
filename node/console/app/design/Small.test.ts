// Tests the arithmetic of the small drawings.
import fc from "fast-check";
import { expect, test } from "vitest";
import { barsOf, distributionWords } from "./DistributionLogic";
import { COLOURS, coloursOf } from "./LineChartLogic";
import { boundsOf, linePath, placedPoints } from "./SparkLogic";

test("bars are as high as their shares, and nothing else is drawn", () => {
  const { own, other } = barsOf([0, 2, 6], [1, 1], 20);
  expect(own).toEqual([0, (0.25 / 0.75) * 20, 20]);
  expect(other.map(Math.round)).toEqual([13, 13]);
  expect(barsOf([0, 0], [], 20).own).toEqual([0, 0]);
  expect(distributionWords([2, 1, 0, 4])).toBe("2 at 0, 1 between, 4 above 0.9");
  expect(distributionWords([0, 0])).toBe("no values");
});

test("points lie within their drawing, in their order", () => {
  const values = fc.array(fc.record({ id: fc.string(), value: fc.option(fc.double({ noNaN: true, min: -1e6, max: 1e6 })) }));
  fc.assert(
    fc.property(values, (points) => {
      const placed = placedPoints(points);
      expect(placed.length).toBe(points.filter(({ value }) => value !== null).length);
      for (const { x, y } of placed) {
        expect(x).toBeGreaterThanOrEqual(0);
        expect(x).toBeLessThanOrEqual(100.0001);
        expect(y).toBeGreaterThanOrEqual(0);
        expect(y).toBeLessThanOrEqual(100);
      }
    }),
  );
  expect(boundsOf([])).toEqual([0, 1]);
  expect(linePath(placedPoints([{ id: "a", value: 1 }]))).toBe("M50.00 50.00");
});

test("what is bad has a colour that no name has by chance", () => {
  const names = Array.from({ length: 20 }, (_, index) => ({ name: `line ${index}` }));
  const colours = coloursOf([...names, { name: "errors", tone: "bad" }, { name: "traces", tone: "accent" }]);
  expect(colours.get("errors")).toBe(COLOURS);
  expect(colours.get("traces")).toBe(0);
  expect(names.filter(({ name }) => colours.get(name) === COLOURS)).toEqual([]);
});
