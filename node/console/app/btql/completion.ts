// What can stand at a place of an expression: fields, operators, functions and values.
import { plain, ranked, type FieldType, type KnownField } from "./known";
import { tokens, type Token } from "./tokens";
import { ROW_FUNCTIONS, type FunctionWord } from "./words";
import { literal, path } from "./write";

export interface Completion {
  readonly kind: "field" | "operator" | "function" | "value" | "keyword";
  /** What the list shows, and what is written. */
  readonly label: string;
  readonly text: string;
  /** A word on it, such as a type or a count. */
  readonly detail: string;
}

export interface Completions {
  /** The part of the text that a completion replaces. */
  readonly from: number;
  readonly to: number;
  readonly options: readonly Completion[];
}

export interface Known {
  readonly fields: readonly KnownField[];
}

const MAX_OPTIONS = 50;

const OPERATORS_OF: Readonly<Record<FieldType, readonly string[]>> = {
  string: ["=", "!=", "IN", "NOT IN", "ILIKE", "LIKE", "MATCH", "IS NULL", "IS NOT NULL"],
  number: ["=", "!=", ">", ">=", "<", "<=", "BETWEEN", "IN", "IS NULL", "IS NOT NULL"],
  boolean: ["=", "!=", "IS NULL", "IS NOT NULL"],
  object: ["IS NOT NULL", "IS NULL", "MATCH", "ILIKE"],
  array: ["INCLUDES", "NOT INCLUDES", "IN", "IS NULL", "IS NOT NULL"],
  time: [">=", "<", ">", "<=", "="],
  unknown: ["=", "!=", "IN", ">", ">=", "<", "<=", "ILIKE", "MATCH", "INCLUDES", "IS NULL", "IS NOT NULL"],
};

/** Operators that NOT may stand before. */
const NEGATABLE = ["IN", "LIKE", "ILIKE", "MATCH", "INCLUDES", "BETWEEN"] as const;

const COMPARING: ReadonlySet<string> = new Set(
  "= != <> < <= > >= <=> <!=> in like ilike match includes contains between ~ !~ ~* !~*".split(" "),
);

/** A token with its text; words in lower case. */
interface Said extends Token {
  readonly word: string;
}

const said = (text: string, token: Token): Said => {
  const word = text.slice(token.start, token.end);
  return { ...token, word: token.kind === "keyword" || token.kind === "name" ? word.toLowerCase() : word };
};

const isOperand = (token: Said): boolean =>
  ["name", "quotedName", "text", "number"].includes(token.kind) ||
  [")", "]", "}", "null", "true", "false", "end"].includes(token.word);

/** The start of the path that ends with the token at an index: the index of its first token. */
function pathStart(before: readonly Said[], last: number): number {
  let index = last;
  while (index > 0) {
    const [token, previous] = [before[index], before[index - 1]];
    const isTouching = token?.start === previous?.end;
    const isJoined = token?.word === "." ? isOperand(previous ?? token) : previous?.word === ".";
    if (!isTouching || !isJoined) break;
    index -= 1;
  }
  return index;
}

const isPathToken = (token: Said | undefined): boolean =>
  token !== undefined && (["name", "quotedName", "keyword"].includes(token.kind) || token.word === ".");

const fieldOption = (field: KnownField): Completion => {
  const text = path(field.path);
  return { kind: "field", label: text, text, detail: field.type === "unknown" ? "" : field.type };
};

const word = (text: string): Completion => ({ kind: "keyword", label: text, text, detail: "" });

const functionOption = ([name, about, apply]: FunctionWord): Completion => ({
  kind: "function",
  label: `${name}()`,
  text: apply ?? `${name}(`,
  detail: about,
});

const operatorOption = (operator: string): Completion => ({
  kind: "operator",
  label: operator,
  text: `${operator} `,
  detail: "",
});

function valueOptions(field: KnownField | undefined, isList: boolean): readonly Completion[] {
  if (field === undefined) return [];
  const isFlag = field.type === "boolean" && field.values.length === 0;
  const values = isFlag ? [true, false].map((value) => ({ value, count: 0 })) : field.values;
  return values.map(({ value, count }) => ({
    kind: "value",
    label: String(value),
    text: isList ? `(${literal(value)}` : literal(value),
    detail: count === 0 ? "" : String(count),
  }));
}

const operandOptions = (known: Known): readonly Completion[] => [
  ...known.fields.map(fieldOption),
  ...ROW_FUNCTIONS.map(functionOption),
  word("NOT"),
];

/** What is compared at the end of some tokens: the path on the left, and its operator. */
interface Comparing {
  readonly path: string;
  readonly operator: string;
  /** Whether values stand in a list whose parenthesis is open. */
  readonly isInList: boolean;
}

function comparingAt(text: string, before: readonly Said[]): Comparing | null {
  let at = before.length - 1;
  let isInList = false;
  if (before[at]?.word === "(" || before[at]?.word === ",") {
    while (at >= 0 && before[at]?.word !== "(") {
      if (!["text", "number", "keyword"].includes(before[at]?.kind ?? "") && before[at]?.word !== ",") return null;
      at -= 1;
    }
    if (before[at - 1]?.word !== "in") return null;
    at -= 1;
    isInList = true;
  }
  const operator = before[at];
  if (operator === undefined || !COMPARING.has(operator.word)) return null;
  const last = before[at - 1]?.word === "not" ? at - 2 : at - 1;
  const end = before[last];
  const start = before[last < 0 ? 0 : pathStart(before, last)];
  if (end === undefined || start === undefined || !isPathToken(end)) return null;
  return { path: text.slice(start.start, end.end), operator: operator.word, isInList };
}

function fieldOf(fields: readonly KnownField[], written: string): KnownField | undefined {
  return fields.find((field) => path(field.path) === written) ?? fields.find((field) => plain(path(field.path)) === plain(written));
}

const shortened = (from: number, to: number, options: readonly Completion[]): Completions | null =>
  options.length === 0 ? null : { from, to, options: options.slice(0, MAX_OPTIONS) };

/** What can stand where an operand was: an operator, or what joins conditions. */
function afterOperand(text: string, before: readonly Said[], known: Known): readonly Completion[] {
  const last = before.length - 1;
  const start = pathStart(before, last);
  const isCompared = COMPARING.has(before[start - 1]?.word ?? "");
  const isPath = isPathToken(before[last]) && !isCompared;
  const joining = [word("AND "), word("OR ")];
  if (!isPath) return joining;
  const field = fieldOf(known.fields, text.slice(before[start]?.start, before[last]?.end));
  return [...OPERATORS_OF[field?.type ?? "unknown"].map(operatorOption), ...joining];
}

/** What can stand behind some tokens. Beside values, fields are offered only once something is typed. */
function behind(text: string, before: readonly Said[], known: Known, isTyped: boolean): readonly Completion[] {
  const last = before.at(-1);
  const previous = before.at(-2);
  if (last === undefined) return operandOptions(known);
  if (last.word === "not" && previous !== undefined && isOperand(previous)) return NEGATABLE.map(operatorOption);
  const comparing = comparingAt(text, before);
  if (comparing !== null) {
    const isList = comparing.operator === "in" && !comparing.isInList;
    const values = valueOptions(fieldOf(known.fields, comparing.path), isList);
    return isList || (values.length > 0 && !isTyped) ? values : [...values, ...operandOptions(known)];
  }
  return isOperand(last) ? afterOperand(text, before, known) : operandOptions(known);
}

/**
 * What can stand at the caret. A path or a text that is being typed is replaced as a whole; null if there is nothing to
 * offer, and within comments.
 */
export function completions(text: string, caret: number, known: Known): Completions | null {
  const all = tokens(text).map((token) => said(text, token));
  const before = all.filter((token) => token.start < caret);
  const last = before.at(-1);
  if (last === undefined || last.end < caret) return shortened(caret, caret, behind(text, before, known, false));
  if (last.kind === "comment") return null;
  if (last.kind === "text" || last.kind === "wrong") {
    const comparing = comparingAt(text, before.slice(0, -1));
    const typed = text.slice(last.start + 1, caret).replace(/['"]$/, "");
    const field = comparing === null ? undefined : fieldOf(known.fields, comparing.path);
    return shortened(last.start, last.end, ranked(valueOptions(field, false), typed, (option) => option.label));
  }
  if (!isPathToken(last)) return shortened(caret, caret, behind(text, before, known, false));
  const start = pathStart(before, before.length - 1);
  const from = before[start]?.start ?? caret;
  const options = ranked(behind(text, before.slice(0, start), known, true), text.slice(from, caret), (option) => option.label);
  return shortened(from, last.end, options);
}
