// Groups in groups and roles in roles: what is reached from one, by which way, and what would close a circle.

/** A thing that has others of its kind in it. */
export interface Nested {
  readonly id: string;
  /** The ids of those that are in it. */
  readonly inner: readonly string[];
}

/** The inner ones of each, by id. */
export const innerOf = (all: readonly Nested[]): ReadonlyMap<string, readonly string[]> =>
  new Map(all.map(({ id, inner }) => [id, inner]));

/** Turns the nesting around: those that have each in them, by its id. */
export function outerOf(all: readonly Nested[]): ReadonlyMap<string, readonly string[]> {
  const outer = new Map<string, string[]>();
  for (const { id, inner } of all) {
    for (const one of inner) {
      const known = outer.get(one);
      if (known === undefined) outer.set(one, [id]);
      else known.push(id);
    }
  }
  return outer;
}

/**
 * Everything that is reached from one, each with the shortest way to it, which ends with it. The start is not reached,
 * even in a circle.
 */
export function reached(
  start: string,
  next: ReadonlyMap<string, readonly string[]>,
): ReadonlyMap<string, readonly string[]> {
  const ways = new Map<string, readonly string[]>();
  const open = [start];
  for (const at of open) {
    for (const one of next.get(at) ?? []) {
      if (one === start || ways.has(one)) continue;
      ways.set(one, [...(ways.get(at) ?? []), one]);
      open.push(one);
    }
  }
  return ways;
}

/** Whether putting one into another would close a circle. */
export const closesCircle = (inner: string, outer: string, next: ReadonlyMap<string, readonly string[]>): boolean =>
  inner === outer || reached(inner, next).has(outer);
