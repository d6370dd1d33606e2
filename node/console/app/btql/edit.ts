// Changes of filters: a condition is added, taken away or exchanged.
import { chipOf, textOfChips, type Chip, type Condition } from "./chips";
import type { Scalar, Step } from "./tree";
import { called } from "./write";

/** What a row of the list is. */
export type RowShape = "traces" | "spans";

export const condition = (
  path: readonly Step[],
  operator: Condition["operator"],
  ...values: readonly Scalar[]
): Condition => ({ path, operator, values, isNegated: false, span: "same" });

/** Whether a chip takes part in the conditions that one span must fulfil together. */
const isPlain = (chip: Chip): boolean =>
  chip.condition === null
    ? !["singlespanfilter", "matchingspansfilter"].includes(chip.tree.op)
    : chip.condition.span === "same";

/**
 * A condition as it is added to a filter. Among traces, a second condition may be fulfilled by another span than the
 * first: who asks for traces with a model and an environment rarely means one span that has both.
 */
export function placed(chips: readonly Chip[], added: Condition, shape: RowShape): Condition {
  return shape === "traces" && added.span === "same" && chips.some(isPlain) ? { ...added, span: "some" } : added;
}

/** The condition that leaves out what another finds. */
export function excluded(found: Condition, shape: RowShape): Condition {
  if (shape === "traces") return { ...found, span: found.span === "no" ? "same" : "no" };
  // A row without a value has another value, too: `!=` would leave it out.
  if (found.operator === "eq" && !found.isNegated) return { ...found, operator: "nsne" };
  if (found.operator === "isnull") return { ...found, operator: "isnotnull" };
  if (found.operator === "isnotnull") return { ...found, operator: "isnull" };
  return { ...found, isNegated: !found.isNegated };
}

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

export const withChip = (chips: readonly Chip[], added: Condition, shape: RowShape): readonly Chip[] => [
  ...chips,
  chipOf(placed(chips, added, shape)),
];

export const withoutChip = (chips: readonly Chip[], index: number): readonly Chip[] =>
  chips.filter((_, at) => at !== index);

export const withChanged = (chips: readonly Chip[], index: number, changed: Condition): readonly Chip[] =>
  chips.map((chip, at) => (at === index ? chipOf(changed) : chip));


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
