// Changes of filters: a condition is added, taken away or exchanged.
import { chipOf, type Chip, type Condition } from "./chips";
import type { Scalar, Step } from "./tree";

/** What a row of the list is. */
export type RowShape = "traces" | "spans";

export const condition = (
  path: readonly Step[],
  operator: Condition["operator"],
  ...values: readonly Scalar[]
): Condition => ({ path, operator, values, isNegated: false, span: "same" });

/** Whether a chip takes part in the conditions that one span must fulfil together. */
export const isPlain = (chip: Chip): boolean =>
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

export const withChip = (chips: readonly Chip[], added: Condition, shape: RowShape): readonly Chip[] => [
  ...chips,
  chipOf(placed(chips, added, shape)),
];

export const withoutChip = (chips: readonly Chip[], index: number): readonly Chip[] =>
  chips.filter((_, at) => at !== index);

export const withChanged = (chips: readonly Chip[], index: number, changed: Condition): readonly Chip[] =>
  chips.map((chip, at) => (at === index ? chipOf(changed) : chip));
