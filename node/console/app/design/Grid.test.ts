// Tests the arithmetic of grids.
import fc from "fast-check";
import { expect, test } from "vitest";
import { between, drawnRows, reordered, resized, rowsOf, scrollFor, shiftOf, tracksOf, windowOf } from "./GridLogic";
import type { GridColumn } from "./GridTypes";

const columns: readonly GridColumn<null>[] = [
  { id: "a", title: "A", width: 100, cell: () => null },
  { id: "b", title: "B", width: 60, grow: 1, cell: () => null },
  { id: "c", title: "C", width: 50, cell: () => null },
];

test("all rows in view are drawn, and at most two screens", () => {
  const whole = fc.nat({ max: 1_000_000 });
  fc.assert(
    fc.property(whole, fc.integer({ min: 1, max: 2000 }), fc.constantFrom(24, 28, 36), whole, (top, height, rowHeight, count) => {
      const scrollTop = Math.min(top, Math.max(0, count * rowHeight - height));
      const { first, end } = windowOf(scrollTop, height, rowHeight, count);
      expect(end).toBeLessThanOrEqual(count);
      if (count > 0) expect(first).toBeLessThanOrEqual(Math.floor(scrollTop / rowHeight));
      expect(end).toBeGreaterThanOrEqual(Math.min(count, Math.floor((scrollTop + height) / rowHeight)));
      expect(end - first).toBeLessThanOrEqual(Math.ceil(height / rowHeight) * 2 + 20);
    }),
  );
});

test("the current row is drawn wherever it is", () => {
  expect(drawnRows({ first: 3, end: 6 }, 4, 9)).toEqual([3, 4, 5]);
  expect(drawnRows({ first: 3, end: 6 }, 0, 9)).toEqual([0, 3, 4, 5]);
  expect(drawnRows({ first: 3, end: 6 }, 8, 9)).toEqual([3, 4, 5, 8]);
  expect(drawnRows({ first: 0, end: 0 }, -1, 0)).toEqual([]);
});

test("a list scrolls only as far as a row needs", () => {
  expect(scrollFor(0, 0, 100, 28)).toBeNull();
  expect(scrollFor(0, 30, 100, 28)).toBe(0);
  expect(scrollFor(5, 0, 100, 28)).toBe(68);
});

test("rows that come before move the list by their number", () => {
  expect(shiftOf(["x", "y", "a", "b"], "a", 0)).toBe(2);
  expect(shiftOf(["a", "b"], "a", 0)).toBe(0);
  expect(shiftOf(["b"], "a", 0)).toBe(0);
  expect(shiftOf(["b"], undefined, 0)).toBe(0);
});

test("tracks give the free space to what grows, or to nothing", () => {
  expect(tracksOf(columns, null, true)).toBe("2rem 100px minmax(60px, 1fr) 50px");
  expect(tracksOf(columns, { id: "b", width: 80 }, false)).toBe("100px 80px 50px minmax(0, 1fr)");
});

test("columns are resized within limits, and moved within the list", () => {
  expect(resized(columns, "a", 7)[0]).toEqual({ id: "a", width: 40 });
  expect(reordered(columns, "a", 1).map((place) => place.id)).toEqual(["b", "a", "c"]);
  expect(reordered(columns, "a", 9).map((place) => place.id)).toEqual(["b", "c", "a"]);
  expect(reordered(columns, "c", -1).map((place) => place.id)).toEqual(["c", "a", "b"]);
});

test("keys move by rows, pages and to the ends", () => {
  expect(rowsOf("PageDown", 100, 20)).toBe(19);
  expect(rowsOf("End", 100, 20)).toBe(100);
  expect(rowsOf("a", 100, 20)).toBe(0);
});

test("a range of rows is the same in both directions", () => {
  expect(between(["a", "b", "c"], "c", "b")).toEqual(["b", "c"]);
  expect(between(["a", "b", "c"], null, "b")).toEqual(["b"]);
  expect(between(["a"], "a", "z")).toEqual([]);
});
