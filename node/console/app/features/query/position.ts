// Where the cursor stands in a query, which decides what can be written there.
import { dialectOf, lexemesOf, meaningful, unquoted, type Dialect, type Lexeme } from "./lexer";
import { CLAUSE_NAMES, SOURCE_NAMES } from "./words";

export type Position =
  /** Inside a comment, a number or a name that is being made. */
  | { readonly at: "nothing" }
  /** Where a clause can start. */
  | { readonly at: "clause"; readonly from: number; readonly used: ReadonlySet<string> }
  /** Where a source is named. */
  | { readonly at: "source"; readonly from: number }
  /** Inside the quotes of a source's argument. */
  | { readonly at: "object"; readonly from: number; readonly to: number; readonly source: string }
  /** After a source, where a shape can follow. */
  | { readonly at: "shape"; readonly from: number }
  /** Where an expression is written, perhaps after some steps of a path. */
  | { readonly at: "expression"; readonly from: number; readonly path: readonly string[]; readonly clause: string }
  /** Inside the quotes of a value that is compared with a path. */
  | { readonly at: "value"; readonly from: number; readonly to: number; readonly path: readonly string[] };

const isWord = (lexeme: Lexeme | undefined, ...names: readonly string[]): boolean =>
  lexeme?.kind === "word" && names.includes(lexeme.text.toLowerCase());

const SQL_STARTS = ["select", "from", "where", "having", "limit", "offset", "unpivot", "pivot", "tablesample"];

/** The clause that a lexeme starts; null for others. */
function startOf(lexemes: readonly Lexeme[], index: number, dialect: Dialect): string | null {
  const [lexeme, next] = [lexemes[index], lexemes[index + 1]];
  if (lexeme?.kind !== "word" || lexemes[index - 1]?.text === ".") return null;
  const word = lexeme.text.toLowerCase();
  if (dialect === "btql") return next?.text === ":" && CLAUSE_NAMES.has(word) ? word : null;
  if (SQL_STARTS.includes(word)) return word;
  if ((word === "group" || word === "order") && isWord(next, "by")) return `${word} by`;
  return null;
}

/** The last clause that starts before the end of `lexemes`, and all that do. */
function clausesOf(lexemes: readonly Lexeme[], dialect: Dialect): { readonly last: string; readonly all: ReadonlySet<string> } {
  const all = new Set<string>();
  let last = "";
  for (let index = 0; index < lexemes.length; index += 1) {
    const start = startOf(lexemes, index, dialect);
    if (start === null) continue;
    last = start;
    all.add(start);
  }
  return { last, all };
}

const nameOf = ({ kind, text }: Lexeme): string | null =>
  kind === "word" ? text : kind === "quoted" ? text.slice(1, -1) : null;

/** The steps of the path before the point at `index`. An index such as [0] is no step that fields are listed by. */
function pathBefore(lexemes: readonly Lexeme[], index: number): readonly string[] {
  const steps: string[] = [];
  let point = index;
  while (lexemes[point]?.text === ".") {
    let end = point - 1;
    while (lexemes[end]?.text === "]") {
      const key = lexemes[end - 1];
      if (key?.kind === "string") steps.unshift(unquoted(key));
      end = lexemes.findLastIndex(({ text }, at) => at < end && text === "[") - 1;
    }
    const step = lexemes[end];
    const name = step === undefined ? null : nameOf(step);
    if (name === null) break;
    steps.unshift(name);
    point = end - 1;
  }
  return steps;
}

/** The path of words that ends at `index`. */
function pathEndingAt(lexemes: readonly Lexeme[], index: number): readonly string[] {
  const last = lexemes[index];
  const name = last === undefined ? null : nameOf(last);
  return name === null ? [] : [...pathBefore(lexemes, index - 1), name];
}

const COMPARISONS: ReadonlySet<string> = new Set(["=", "!=", "<>", "<=>", "<!=>"]);

function inString(lexemes: readonly Lexeme[], index: number, cursor: number): Position {
  const string = lexemes[index];
  if (string === undefined) return { at: "nothing" };
  const from = string.from + 1;
  const to = string.isOpen ? cursor : string.to;
  let at = index - 1;
  while (lexemes[at]?.text === "," || lexemes[at]?.kind === "string") at -= 1;
  const [open, before] = [lexemes[at], lexemes[at - 1]];
  if (open?.text === "(" && before?.kind === "word" && SOURCE_NAMES.has(before.text.toLowerCase())) {
    return { at: "object", from, source: before.text.toLowerCase(), to };
  }
  if (open?.text === "(" && isWord(before, "in")) {
    const end = isWord(lexemes[at - 2], "not") ? at - 3 : at - 2;
    return { at: "value", from, path: pathEndingAt(lexemes, end), to };
  }
  if (COMPARISONS.has(open?.text ?? "")) return { at: "value", from, path: pathEndingAt(lexemes, at - 1), to };
  if (isWord(open, "includes", "contains")) return { at: "value", from, path: pathEndingAt(lexemes, at - 1), to };
  return { at: "nothing" };
}

/** Whether a clause may start after the lexeme before the cursor: an operand has ended, and no bracket is open. */
function mayStart(lexemes: readonly Lexeme[], last: Lexeme | undefined, isNewLine: boolean): boolean {
  let depth = 0;
  for (const { text } of lexemes) {
    if (text === "(" || text === "[") depth += 1;
    else if (text === ")" || text === "]") depth -= 1;
  }
  if (depth > 0) return false;
  if (last === undefined || last.text === "|") return true;
  return isNewLine && !/^(?:[,:.+\-/%=<>~(]|<=|>=|!=|<>)$/.test(last.text) && !isWord(last, "and", "or", "not", "as", "in");
}

/** Where the cursor stands. */
export function positionAt(text: string, cursor: number): Position {
  const everything = lexemesOf(text);
  const dialect = dialectOf(everything);
  const inside = everything.find(({ from, to, isOpen }) => from < cursor && (cursor < to || (isOpen && cursor === to)));
  if (inside?.kind === "comment") return { at: "nothing" };
  const lexemes = meaningful(everything);
  if (inside?.kind === "string") return inString(lexemes, lexemes.indexOf(inside), cursor);
  const comment = everything.find(({ kind, to }) => kind === "comment" && to === cursor);
  if (comment?.text.startsWith("--") === true) return { at: "nothing" };
  const before = lexemes.filter(({ to }) => to <= cursor);
  const partial = lexemes.find(({ kind, from, to }) => (kind === "word" || kind === "number") && from < cursor && cursor <= to);
  if (partial?.kind === "number") return { at: "nothing" };
  const from = partial?.from ?? cursor;
  const complete = before.filter((lexeme) => lexeme.to <= from);
  const last = complete.at(-1);
  const { last: clause } = clausesOf([...complete, ...everything.filter((one) => one.from >= from).slice(0, 1)], dialect);
  const { all } = clausesOf(lexemes, dialect);
  if (last?.text === ".") return { at: "expression", from, path: pathBefore(complete, complete.length - 1), clause };
  if (isWord(last, "as")) return { at: "nothing" };
  const isNewLine = text.slice(last?.to ?? 0, from).includes("\n");
  if (dialect === "btql" && mayStart(complete, last, isNewLine)) return { at: "clause", from, used: all };
  if (clause === "") return { at: "clause", from, used: all };
  if (clause === "from" && (isWord(last, "from") || last?.text === ":")) return { at: "source", from };
  if (clause === "from" && last?.text === ")") {
    return dialect === "btql" ? { at: "shape", from } : { at: "clause", from, used: all };
  }
  if (["limit", "cursor", "offset", "preview_length", "inference_budget"].includes(clause)) {
    return dialect === "sql" && last?.kind === "number" ? { at: "clause", from, used: all } : { at: "nothing" };
  }
  return { at: "expression", from, path: [], clause };
}

/** What a query reads: the name of its source and the texts of its arguments. */
export function sourceOf(text: string): { readonly name: string; readonly ids: readonly string[] } | null {
  const lexemes = meaningful(lexemesOf(text));
  for (const [index, lexeme] of lexemes.entries()) {
    const name = lexeme.text.toLowerCase();
    const isSource = lexeme.kind === "word" && SOURCE_NAMES.has(name) && lexemes[index + 1]?.text === "(";
    if (!isSource) continue;
    const ids: string[] = [];
    for (const argument of lexemes.slice(index + 2)) {
      if (argument.kind === "string" && !argument.isOpen) ids.push(unquoted(argument));
      else if (argument.text !== ",") break;
    }
    if (ids.length > 0 && ids.every((id) => id !== "")) return { name, ids };
  }
  return null;
}
