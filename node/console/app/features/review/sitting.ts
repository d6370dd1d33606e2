// One sitting of somebody who works through a queue: where they are, what is done, and what they passed by.

export interface Sitting {
  /** The ids of the rows that waited when the sitting began, in order. */
  readonly order: readonly string[];
  readonly done: ReadonlySet<string>;
  readonly skipped: ReadonlySet<string>;
  /** The rows that were left, the last at the end. */
  readonly trail: readonly string[];
  /** The row that is shown; null at the end. */
  readonly at: string | null;
}

const isOpen = ({ done, skipped }: Sitting, id: string): boolean => !done.has(id) && !skipped.has(id);

/** The row that comes after one among those that wait; null if there is none. */
export function nextAfter(sitting: Sitting, id: string | null): string | null {
  const from = id === null ? -1 : sitting.order.indexOf(id);
  const around = [...sitting.order.slice(from + 1), ...sitting.order.slice(0, Math.max(from, 0))];
  return around.find((one) => one !== id && isOpen(sitting, one)) ?? null;
}

/** Begins with a row, whether it waits or not, or with the first that waits. */
export function begin(order: readonly string[], row: string): Sitting {
  const sitting = { order, done: new Set<string>(), skipped: new Set<string>(), trail: [], at: null };
  return { ...sitting, at: row === "" ? nextAfter(sitting, null) : row };
}

function left(sitting: Sitting, change: Partial<Sitting>): Sitting {
  const { at, trail } = sitting;
  if (at === null) return sitting;
  const changed = { ...sitting, ...change };
  return { ...changed, trail: [...trail.filter((id) => id !== at), at], at: nextAfter(changed, at) };
}

const withId = (ids: ReadonlySet<string>, id: string | null): ReadonlySet<string> => (id === null ? ids : new Set([...ids, id]));

const withoutId = (ids: ReadonlySet<string>, id: string | null): ReadonlySet<string> => new Set([...ids].filter((one) => one !== id));

/** Goes on after the row that is shown was reviewed. */
export const finish = (sitting: Sitting): Sitting =>
  left(sitting, { done: withId(sitting.done, sitting.at), skipped: withoutId(sitting.skipped, sitting.at) });

/** Goes on without a review. */
export const skip = (sitting: Sitting): Sitting => left(sitting, { skipped: withId(sitting.skipped, sitting.at) });

/** Shows the row that was left last. */
export function back(sitting: Sitting): Sitting {
  const last = sitting.trail.at(-1);
  return last === undefined ? sitting : { ...sitting, trail: sitting.trail.slice(0, -1), at: last };
}

/** Shows a row. */
export const goTo = (sitting: Sitting, id: string): Sitting =>
  id === sitting.at
    ? sitting
    : { ...sitting, at: id, trail: sitting.at === null ? sitting.trail : [...sitting.trail, sitting.at] };

/** Takes back that a row was reviewed, because its review was not saved. At the end, the row is shown again. */
export function reopen(sitting: Sitting, id: string): Sitting {
  const opened = { ...sitting, done: withoutId(sitting.done, id) };
  return sitting.at === null ? goTo(opened, id) : opened;
}

/** Begins again with the rows that were skipped. */
export function again(sitting: Sitting): Sitting {
  const opened = { ...sitting, skipped: new Set<string>() };
  return { ...opened, at: nextAfter(opened, null) };
}

/** How many rows wait for a review, skipped or not. */
export const waitingIn = ({ order, done }: Sitting): number => order.filter((id) => !done.has(id)).length;

/** Longer reviews are pauses, which tell nothing of the pace. */
const PAUSE_MS = 600_000;

/** How long a review takes: the median of those of the sitting, in milliseconds; null before the second. */
export function paceOf(times: readonly number[]): number | null {
  const sorted = times.filter((time) => time < PAUSE_MS).sort((one, other) => one - other);
  if (sorted.length < 2) return null;
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}
