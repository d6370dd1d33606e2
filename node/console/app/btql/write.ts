// Writes texts of the query language from values and paths of any content.
import { outerTokens, tokens } from "./tokens";
import type { Step } from "./tree";

export type Literal = string | number | boolean | null | readonly Literal[];

/** Words that a path cannot begin with unless they are quoted. */
const NEVER_FIRST: ReadonlySet<string> = new Set(
  [
    "and or in is as then else when end select from where group order having limit offset union intersect except join",
    "on using unpivot pivot settings null true false not case cast extract exists interval date timestamp isnull",
    "isnotnull current_date current_timestamp distinct",
  ].flatMap((line) => line.split(" ")),
);

/** Names that need no quotes whatever version of Unicode a server knows. */
const isPlain = (name: string): boolean => /^[A-Za-z_][\w$]*$/.test(name);

/** Half of a character cannot be sent, and becomes the sign for that. */
const wellFormed = (words: string): string => words.replace(/\p{Surrogate}/gu, "\u{fffd}");

const quotedName = (name: string): string => `\`${wellFormed(name).replaceAll("`", "``")}\``;

function step(part: Step, index: number): string {
  if (typeof part === "number") return `[${part}]`;
  if (index > 0) return `.${isPlain(part) ? part : quotedName(part)}`;
  return isPlain(part) && !NEVER_FIRST.has(part.toLowerCase()) ? part : quotedName(part);
}

/** A path: a column, and the keys and indexes below it. */
export const path = (steps: readonly Step[]): string => steps.map(step).join("");

const text = (value: string): string => `'${wellFormed(value).replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;

/** A value. A number that is none is written as null. */
export function literal(value: Literal): string {
  if (typeof value === "string") return text(value);
  if (typeof value === "number") return Number.isFinite(value) ? String(value === 0 ? 0 : value) : "null";
  if (typeof value === "boolean" || value === null) return String(value);
  return `[${value.map(literal).join(", ")}]`;
}

/** The values after IN. */
export const list = (values: readonly Literal[]): string => `(${values.map(literal).join(", ")})`;

/** A function with its arguments, which are texts of expressions. */
export const called = (name: string, ...args: readonly string[]): string => `${name}(${args.join(", ")})`;

/** Removes comments, which could reach into what stands behind them. */
function withoutComments(expression: string): string {
  const comments = tokens(expression).filter((token) => token.kind === "comment");
  return comments
    .reduceRight((rest, { start, end }) => `${rest.slice(0, start)} ${rest.slice(end)}`, expression)
    .trim();
}

const LOOSER = { conjunct: ["or", "?"], negated: ["or", "?", "and"] } as const;

/** Puts parentheses around an expression where an operator outside it would bind more tightly. */
function bound(expression: string, place: keyof typeof LOOSER): string {
  const looser: readonly string[] = LOOSER[place];
  const outer = outerTokens(expression);
  return outer !== null && !outer.some(({ word }) => looser.includes(word)) ? expression : `(${expression})`;
}

/** The expression that all of some expressions make together; the empty text for none. Empty ones are left out. */
export function conjunction(expressions: readonly string[]): string {
  const parts = expressions.map(withoutComments).filter((part) => part !== "");
  return parts.length === 1 ? (parts[0] ?? "") : parts.map((part) => bound(part, "conjunct")).join(" AND ");
}

/** The opposite of an expression. */
export const negation = (expression: string): string => `NOT ${bound(withoutComments(expression), "negated")}`;

/** The condition that a time lies within bounds; the empty text if there are none. */
export function createdWithin(bounds: { readonly from: string | null; readonly to: string | null }): string {
  const { from, to } = bounds;
  return conjunction([
    from === null ? "" : `created >= ${literal(from)}`,
    to === null ? "" : `created < ${literal(to)}`,
  ]);
}
