// The syntax tree of an expression, as the server reads and writes it.

export interface Tree {
  readonly op: string;
  readonly [field: string]: unknown;
}

/** A value that a chip can compare with. */
export type Scalar = string | number | boolean;

export type Step = string | number;

export const isTree = (value: unknown): value is Tree =>
  typeof value === "object" && value !== null && "op" in value && typeof value.op === "string";

export const isScalar = (value: unknown): value is Scalar =>
  typeof value === "string" || typeof value === "boolean" || (typeof value === "number" && isExact(value));

/** Whether a number is the one that was sent: a whole number beyond these has lost digits. */
const isExact = (value: number): boolean =>
  Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));

export const ident = (steps: readonly Step[]): Tree => ({ op: "ident", name: steps });

export const literalTree = (value: unknown): Tree => ({ op: "literal", value });

export const callTree = (name: string, ...args: readonly Tree[]): Tree => ({
  op: "function",
  name: ident([name]),
  args,
});

/** The path that a tree is, or null. A quoted word that looks plain has a meaning of its own and is none. */
export function pathOf(tree: unknown): readonly Step[] | null {
  if (!isTree(tree) || tree.op !== "ident" || Object.keys(tree).length !== 2) return null;
  const name = tree["name"];
  if (!Array.isArray(name) || name.length === 0) return null;
  const steps = name.filter((step) => typeof step === "string" || Number.isSafeInteger(step));
  return steps.length === name.length && typeof steps[0] === "string" ? steps : null;
}

/** The operands of a conjunction, or the tree itself. */
export function conjuncts(tree: Tree): readonly Tree[] {
  if (tree.op !== "and") return [tree];
  const children = tree["children"];
  const operands = [tree["left"], tree["right"], ...(Array.isArray(children) ? children : [])];
  return operands.filter(isTree).flatMap(conjuncts);
}

/** The tree that all of some trees make together; null for none. */
export function joined(trees: readonly Tree[]): Tree | null {
  const [first] = trees;
  if (first === undefined) return null;
  return trees.length === 1 ? first : { op: "and", children: trees };
}
