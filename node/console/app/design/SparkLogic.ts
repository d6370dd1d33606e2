// Where the points of a spark line stand.

export interface SparkPoint {
  readonly id: string;
  /** Null for a gap. */
  readonly value: number | null;
}

export interface PlacedPoint {
  readonly id: string;
  /** In percent of the width. */
  readonly x: number;
  /** In percent of the height, from the top. */
  readonly y: number;
  readonly value: number;
}

/** The lowest and the highest value, with some room; a flat line lies in the middle. */
export function boundsOf(points: readonly SparkPoint[]): readonly [number, number] {
  const values = points.flatMap(({ value }) => (value === null ? [] : [value]));
  if (values.length === 0) return [0, 1];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = high === low ? Math.max(Math.abs(high) * 0.1, 0.05) : (high - low) * 0.1;
  return [low - room, high + room];
}

/** Places points at equal distances, in their order. */
export function placedPoints(points: readonly SparkPoint[]): readonly PlacedPoint[] {
  const [low, high] = boundsOf(points);
  const step = points.length > 1 ? 100 / (points.length - 1) : 0;
  return points.flatMap(({ id, value }, index) =>
    value === null ? [] : [{ id, value, x: points.length === 1 ? 50 : index * step, y: ((high - value) / (high - low)) * 100 }],
  );
}

/** The line through all points, as the path of a drawing of 100 by 100. */
export const linePath = (placed: readonly PlacedPoint[]): string =>
  placed.map(({ x, y }, index) => `${index === 0 ? "M" : "L"}${x.toFixed(2)} ${y.toFixed(2)}`).join("");
