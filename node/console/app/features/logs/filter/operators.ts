// The operators that a chip offers for a field, and the conditions that they make.
import {
  patternWithin,
  textWithin,
  type Condition,
  type FieldType,
  type Operator,
  type Scalar,
  type Step,
} from "../../../btql";

/** How many values an operator takes; `text` is one that is typed. */
export type Takes = "none" | "one" | "many" | "text";

export interface OperatorChoice {
  readonly id: string;
  readonly label: string;
  readonly takes: Takes;
  readonly operator: Operator;
  readonly isNegated: boolean;
}

const choice = (id: string, label: string, takes: Takes, operator: Operator, isNegated = false): OperatorChoice => ({
  id,
  label,
  takes,
  operator,
  isNegated,
});

const IS = choice("is", "is", "one", "eq");
const IS_NOT = choice("is-not", "is not", "one", "ne");
const IS_OTHER = choice("is-other", "is not, or is empty", "one", "nsne");
const ONE_OF = choice("one-of", "is one of", "many", "in");
const NONE_OF = choice("none-of", "is none of", "many", "in", true);
const CONTAINS = choice("contains", "contains", "text", "ilike");
const CONTAINS_NOT = choice("contains-not", "does not contain", "text", "ilike", true);
const WORDS = choice("words", "has the words", "text", "match");
const WORDS_NOT = choice("words-not", "has not the words", "text", "match", true);
const PRESENT = choice("present", "is present", "none", "isnotnull");
const EMPTY = choice("empty", "is empty", "none", "isnull");
const TRUE = choice("true", "is true", "none", "true");
const TRUE_NOT = choice("true-not", "is not true", "none", "true", true);
const INCLUDES = choice("includes", "includes", "one", "includes");
const INCLUDES_NOT = choice("includes-not", "does not include", "one", "includes", true);
const GREATER = choice("gt", "greater than", "one", "gt");
const AT_LEAST = choice("ge", "at least", "one", "ge");
const LESS = choice("lt", "less than", "one", "lt");
const AT_MOST = choice("le", "at most", "one", "le");
const SINCE = choice("ge", "at or after", "one", "ge");
const BEFORE = choice("lt", "before", "one", "lt");
const LIKE = choice("like", "is like", "text", "like");
const LIKE_NOT = choice("like-not", "is not like", "text", "like", true);

const EVERY: readonly OperatorChoice[] = [
  ...[IS, IS_NOT, IS_OTHER, ONE_OF, NONE_OF, CONTAINS, CONTAINS_NOT, WORDS, WORDS_NOT, PRESENT, EMPTY, INCLUDES, INCLUDES_NOT],
  ...[GREATER, AT_LEAST, LESS, AT_MOST, TRUE, TRUE_NOT, LIKE, LIKE_NOT],
];

const BY_TYPE: Readonly<Record<FieldType, readonly OperatorChoice[]>> = {
  string: [IS, IS_NOT, IS_OTHER, ONE_OF, NONE_OF, CONTAINS, CONTAINS_NOT, WORDS, PRESENT, EMPTY, LIKE],
  number: [IS, IS_NOT, IS_OTHER, GREATER, AT_LEAST, LESS, AT_MOST, ONE_OF, PRESENT, EMPTY],
  boolean: [IS, IS_NOT, IS_OTHER, PRESENT, EMPTY],
  object: [PRESENT, EMPTY, WORDS, WORDS_NOT, CONTAINS, CONTAINS_NOT],
  array: [INCLUDES, INCLUDES_NOT, PRESENT, EMPTY, WORDS],
  time: [SINCE, BEFORE],
  unknown: EVERY,
};

export const choicesFor = (type: FieldType): readonly OperatorChoice[] => BY_TYPE[type];

/** The choice that a condition was made by; null for those that have to be changed as text. */
export function choiceOf({ operator, isNegated, values }: Condition): OperatorChoice | null {
  if (operator === "ilike" && textWithin(String(values[0] ?? "")) === null) return null;
  return EVERY.find((one) => one.operator === operator && one.isNegated === isNegated) ?? null;
}

/** The text that stands in the field for values when a condition is changed. */
export function typedOf({ operator, values }: Condition): string {
  const [first] = values;
  if (typeof first !== "string") return first === undefined ? "" : String(first);
  return operator === "ilike" ? (textWithin(first) ?? first) : first;
}

/** What is typed as a value of a field. Text that is no value of its type stays text. */
export function scalarOf(typed: string, type: FieldType): Scalar {
  if (type === "boolean" && (typed === "true" || typed === "false")) return typed === "true";
  const isNumber = (type === "number" || type === "unknown") && /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(typed.trim());
  const number = Number(typed);
  return isNumber && Number.isFinite(number) && (Number.isSafeInteger(number) || !Number.isInteger(number)) ? number : typed;
}

export function conditionBy(
  path: readonly Step[],
  by: OperatorChoice,
  values: readonly Scalar[],
  span: Condition["span"],
): Condition {
  const isContaining = by.operator === "ilike";
  const kept = isContaining ? values.map((value) => patternWithin(String(value))) : values;
  return { path, operator: by.operator, values: kept, isNegated: by.isNegated, span };
}
