// Which experiments a selection compares, and which of them is the one looked at.
import type { Experiment } from "../../api/experiments";

/** How many experiments can be compared at once. */
export const MOST_COMPARED = 8;

/**
 * The names of selected experiments: first the newest, which is looked at, then the base that it is compared with, then
 * the others. The base is the project's baseline if that is selected, else the oldest.
 */
export function chosenNames(
  all: readonly Experiment[],
  ids: ReadonlySet<string>,
  baseline: string | null,
): readonly string[] {
  const chosen = all
    .filter(({ id }) => ids.has(id))
    .toSorted((a, b) => Date.parse(b.created) - Date.parse(a.created) || (a.name < b.name ? -1 : 1));
  const base = chosen.find(({ id }) => id === baseline) ?? chosen.at(-1);
  const [first, ...others] = chosen.filter((one) => one !== base);
  const order = first === undefined ? [base] : [first, base, ...others];
  return order.flatMap((one) => (one === undefined ? [] : [one.name]));
}
