// Makes expressions of the query language from values that are clicked.
import { condition, excluded, path, textOfCondition, type Condition } from "../../../btql";
import { Exact } from "../../../lib/json";

type Step = string | number;

export type FilterBy = (steps: readonly Step[], value: unknown, isExcluded: boolean) => void;

/** A condition as text, or the text of the one that leaves out what it finds. */
const written = (found: Condition, isExcluded: boolean): string =>
  textOfCondition(isExcluded ? excluded(found, "spans") : found);

/** The condition that a path has a value, or that it has another one; null for values that are no scalars. */
export function expressionOf(steps: readonly Step[], value: unknown, isExcluded: boolean): string | null {
  if (value === null || value === undefined) return written(condition(steps, "isnull"), isExcluded);
  if (value instanceof Exact) return `${path(steps)} ${isExcluded ? "<!=>" : "="} ${value.source}`;
  const isScalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  return isScalar ? written(condition(steps, "eq", value), isExcluded) : null;
}

/** The condition that a row has a tag, or has it not. */
export const tagExpression = (tag: string, isExcluded: boolean): string =>
  written(condition(["tags"], "includes", tag), isExcluded);
