// Changes of filters that facets and cells make. They stand alone, because the filter bar does not need them.
import { chipOf, textOfChips, type Chip, type Condition } from "./chips";
import { condition, excluded, isPlain, placed, type RowShape } from "./edit";
import type { Step } from "./tree";
import { called } from "./write";

const key = (one: Condition): string => JSON.stringify([one.path, one.operator, one.values, one.isNegated]);

/** Whether two conditions are alike apart from the spans that they ask. */
export const isAlike = (one: Condition, other: Condition): boolean => key(one) === key(other);

/** How a filter holds a condition: as it is, or left out. */
export function stateOf(chips: readonly Chip[], found: Condition, shape: RowShape): "with" | "without" | "none" {
  const without = excluded(found, shape);
  for (const { condition: held } of chips) {
    if (held === null) continue;
    if (isAlike(held, found) && held.span !== "no") return "with";
    if (isAlike(held, without) && (held.span === "no") === (without.span === "no")) return "without";
  }
  return "none";
}

const isAbout = (chip: Chip, found: Condition, shape: RowShape): boolean =>
  stateOf([chip], found, shape) !== "none";

/** Adds a condition, or the one that excludes it. If the filter holds it already, it is taken away. */
export function toggled(
  chips: readonly Chip[],
  found: Condition,
  isExcluded: boolean,
  shape: RowShape,
): readonly Chip[] {
  const before = stateOf(chips, found, shape);
  const rest = chips.filter((chip) => !isAbout(chip, found, shape));
  if (before === (isExcluded ? "without" : "with")) return rest;
  return [...rest, chipOf(isExcluded ? excluded(found, shape) : placed(rest, found, shape))];
}

/** The chips of a range of numbers, the upper bound of which does not belong to it. */
export function rangeChips(
  chips: readonly Chip[],
  path: readonly Step[],
  from: number,
  to: number,
  shape: RowShape,
): readonly Chip[] {
  const ends = [chipOf(condition(path, "ge", from)), chipOf(condition(path, "lt", to))];
  if (shape === "spans" || !chips.some(isPlain)) return ends;
  const text = called("any_span", textOfChips(ends));
  return [{ text, tree: { op: "singlespanfilter", expr: { op: "and", children: ends.map((end) => end.tree) } }, condition: null }];
}

/** Adds some chips, or takes them away if the filter has all of them. */
export function toggledChips(chips: readonly Chip[], added: readonly Chip[]): readonly Chip[] {
  const texts = new Set(added.map((chip) => chip.text));
  const rest = chips.filter((chip) => !texts.has(chip.text));
  return rest.length === chips.length - added.length ? rest : [...rest, ...added];
}
