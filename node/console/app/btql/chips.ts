// A filter as a list of chips: each operand of its outermost AND is one.
import { splitConjunction } from "./tokens";
import { callTree, conjuncts, ident, isScalar, isTree, joined, literalTree, pathOf, type Scalar, type Step, type Tree } from "./tree";
import { called, conjunction, list, literal, negation, path } from "./write";

/** Operators that compare a path with one value. */
export const COMPARISONS = ["eq", "ne", "nsne", "lt", "le", "gt", "ge", "like", "ilike", "match", "includes"] as const;

/** Operators of chips. `true` is a path alone, `search` looks into several columns and has no path. */
export const OPERATORS = [...COMPARISONS, "in", "isnull", "isnotnull", "true", "search"] as const;

export type Comparison = (typeof COMPARISONS)[number];
export type Operator = (typeof OPERATORS)[number];

/** A condition that a chip can show and change. */
export interface Condition {
  readonly path: readonly Step[];
  readonly operator: Operator;
  /** One value, several for `in`, and none for tests of a path alone. */
  readonly values: readonly Scalar[];
  readonly isNegated: boolean;
  /** `same`: a row that fulfils all such conditions. `some`: a span of the trace. `no`: no span of the trace. */
  readonly span: "same" | "some" | "no";
}

export interface Chip {
  /** The expression of this chip alone. */
  readonly text: string;
  readonly tree: Tree;
  /** Null for an expression that has to be changed as text. */
  readonly condition: Condition | null;
}

const SYMBOLS: Readonly<Record<Comparison, string>> = {
  eq: "=",
  ne: "!=",
  nsne: "<!=>",
  lt: "<",
  le: "<=",
  gt: ">",
  ge: ">=",
  like: "LIKE",
  ilike: "ILIKE",
  match: "MATCH",
  includes: "INCLUDES",
};

type Plain = Omit<Condition, "span" | "isNegated">;

const literalOf = (tree: unknown): { readonly value: unknown } | null =>
  isTree(tree) && tree.op === "literal" && Object.keys(tree).length === 2 ? { value: tree["value"] } : null;

const OPERANDS: Readonly<Record<string, readonly [string, string]>> = { includes: ["haystack", "needle"] };

/** Whether a tree has the fields of its operator and no others. */
const hasOnly = (tree: Tree, ...fields: readonly string[]): boolean =>
  Object.keys(tree).length === fields.length + 1 && fields.every((field) => field in tree);

function comparisonOf(tree: Tree): Plain | null {
  const operator = [...COMPARISONS, "in" as const].find((one) => one === tree.op);
  const [left, right] = OPERANDS[tree.op] ?? ["left", "right"];
  if (operator === undefined || !hasOnly(tree, left, right)) return null;
  const found = pathOf(tree[left]);
  const value = literalOf(tree[right])?.value;
  if (found === null) return null;
  if (operator !== "in") return isScalar(value) ? { path: found, operator, values: [value] } : null;
  if (!Array.isArray(value) || value.length === 0) return null;
  const values = value.filter(isScalar);
  return values.length === value.length ? { path: found, operator, values } : null;
}

function searchOf(tree: Tree): Plain | null {
  if (tree.op !== "function" || !hasOnly(tree, "name", "args")) return null;
  const name = pathOf(tree["name"]);
  const args = tree["args"];
  if (name?.length !== 1 || name[0] !== "search" || !Array.isArray(args) || args.length !== 1) return null;
  const value = literalOf(args[0])?.value;
  return typeof value === "string" ? { path: [], operator: "search", values: [value] } : null;
}

function plainOf(tree: Tree): Plain | null {
  const whole = pathOf(tree);
  if (whole !== null) return { path: whole, operator: "true", values: [] };
  if ((tree.op === "isnull" || tree.op === "isnotnull") && hasOnly(tree, "expr")) {
    const found = pathOf(tree["expr"]);
    return found === null ? null : { path: found, operator: tree.op, values: [] };
  }
  return comparisonOf(tree) ?? searchOf(tree);
}

/** What a NOT or a function of spans is around, or null for anything else. */
const within = (tree: Tree, op: string): Tree | null => {
  const inner = tree["expr"];
  return tree.op === op && isTree(inner) && hasOnly(tree, "expr") ? inner : null;
};

function conditionInSpan(tree: Tree): Omit<Condition, "span"> | null {
  const negated = within(tree, "not");
  const plain = plainOf(negated ?? tree);
  return plain === null ? null : { ...plain, isNegated: negated !== null };
}

/** The condition that a tree is, or null if no chip has words for it. */
export function conditionOf(tree: Tree): Condition | null {
  const negated = within(tree, "not");
  const none = negated === null ? null : within(negated, "singlespanfilter");
  const some = within(tree, "singlespanfilter");
  const found = conditionInSpan(none ?? some ?? tree);
  if (found === null) return null;
  return { ...found, span: none !== null ? "no" : some !== null ? "some" : "same" };
}

function plainTree({ path: steps, operator, values }: Plain): Tree {
  switch (operator) {
    case "true":
      return ident(steps);
    case "isnull":
    case "isnotnull":
      return { op: operator, expr: ident(steps) };
    case "search":
      return callTree("search", literalTree(values[0] ?? ""));
    case "in":
      return { op: "in", left: ident(steps), right: literalTree(values) };
    case "includes":
      return { op: "includes", haystack: ident(steps), needle: literalTree(values[0] ?? "") };
    default:
      return { op: operator, left: ident(steps), right: literalTree(values[0] ?? "") };
  }
}

export function treeOfCondition(condition: Condition): Tree {
  const plain = plainTree(condition);
  const inSpan = condition.isNegated ? { op: "not", expr: plain } : plain;
  if (condition.span === "same") return inSpan;
  const some = { op: "singlespanfilter", expr: inSpan };
  return condition.span === "no" ? { op: "not", expr: some } : some;
}

function plainText({ path: steps, operator, values }: Plain): string {
  const value = literal(values[0] ?? "");
  switch (operator) {
    case "true":
      return path(steps);
    case "isnull":
      return `${path(steps)} IS NULL`;
    case "isnotnull":
      return `${path(steps)} IS NOT NULL`;
    case "search":
      return called("search", value);
    case "in":
      return `${path(steps)} IN ${list(values)}`;
    default:
      return `${path(steps)} ${SYMBOLS[operator]} ${value}`;
  }
}

export function textOfCondition(condition: Condition): string {
  const plain = plainText(condition);
  const inSpan = condition.isNegated ? negation(plain) : plain;
  if (condition.span === "same") return inSpan;
  const some = called("any_span", inSpan);
  return condition.span === "no" ? negation(some) : some;
}

export const chipOf = (condition: Condition): Chip => ({
  text: textOfCondition(condition),
  tree: treeOfCondition(condition),
  condition,
});

/**
 * The chips of an expression: its tree, and its text as the server writes it. If the text cannot be cut where the tree
 * can, the whole is one chip.
 */
export function chipsOf(tree: Tree, text: string): readonly Chip[] {
  const trees = conjuncts(tree);
  const texts = splitConjunction(text);
  if (texts?.length !== trees.length) return [{ text, tree, condition: null }];
  return trees.map((one, index) => ({ text: texts[index] ?? "", tree: one, condition: conditionOf(one) }));
}

export const treeOfChips = (chips: readonly Chip[]): Tree | null => joined(chips.map((chip) => chip.tree));

export const textOfChips = (chips: readonly Chip[]): string => conjunction(chips.map((chip) => chip.text));

const WORDS: Readonly<Record<Operator, readonly [string, string]>> = {
  eq: ["=", "is not ="],
  ne: ["≠", "is not ≠"],
  nsne: ["is not", "is not other than"],
  lt: ["<", "is not <"],
  le: ["≤", "is not ≤"],
  gt: [">", "is not >"],
  ge: ["≥", "is not ≥"],
  like: ["is like", "is not like"],
  ilike: ["contains", "does not contain"],
  match: ["has the words", "has not the words"],
  includes: ["includes", "does not include"],
  in: ["is one of", "is none of"],
  isnull: ["is empty", "is not empty"],
  isnotnull: ["is present", "is not present"],
  true: ["is true", "is not true"],
  search: ["", "no"],
};

/** The text that a pattern looks for, if it only looks for a text anywhere: `%text%`. */
export function textWithin(pattern: string): string | null {
  const found = /^%((?:[^\\%_]|\\[\\%_])*)%$/.exec(pattern)?.[1];
  return found === undefined ? null : found.replace(/\\([^])/g, "$1");
}

/** The pattern of ILIKE that looks for a text anywhere. */
export const patternWithin = (text: string): string => `%${text.replace(/[\\%_]/g, "\\$&")}%`;

/** A condition in the words of its chip. */
export interface ChipWords {
  readonly field: string;
  readonly operator: string;
  readonly values: readonly string[];
}

const shown = (value: Scalar): string => (value === "" ? '""' : String(value));

export function wordsOf(condition: Condition): ChipWords {
  const { operator, values, isNegated } = condition;
  const field = operator === "search" ? "text" : path(condition.path);
  const pattern = operator === "ilike" && typeof values[0] === "string" ? textWithin(values[0]) : null;
  const [plain, negated] = operator === "ilike" && pattern === null ? ["is like", "is not like"] : WORDS[operator];
  return { field, operator: isNegated ? negated : plain, values: pattern === null ? values.map(shown) : [shown(pattern)] };
}

/** The words before a condition that is not about the span of the others. */
export const SPAN_WORDS = { some: "any span", no: "no span" } as const;

/** A chip as one line of text: its accessible name. */
export function nameOf(chip: Chip): string {
  if (chip.condition === null) return chip.text;
  const { field, operator, values } = wordsOf(chip.condition);
  const words = [field, operator, values.join(", ")].filter((part) => part !== "").join(" ");
  const { span } = chip.condition;
  return span === "same" ? words : `${SPAN_WORDS[span]} ${words}`;
}
