// Splits a query into lexemes, for colours and to know where the cursor is. It accepts any text.
import { tokens, type TokenKind } from "../../btql";
import type { EditorToken } from "../../design/EditorTypes";
import { CLAUSE_NAMES, FUNCTION_NAMES, SOURCE_NAMES, SQL_WORDS, WORDS } from "./words";

export type Dialect = "sql" | "btql";

export type LexemeKind = "word" | "string" | "quoted" | "number" | "comment" | "symbol" | "unknown";

export interface Lexeme {
  readonly kind: LexemeKind;
  readonly from: number;
  readonly to: number;
  readonly text: string;
  /** Whether a string or a quoted name has no end. */
  readonly isOpen: boolean;
}

const QUOTES: ReadonlySet<string> = new Set(["'", '"', "`"]);

function kindOfToken(kind: TokenKind, first: string): LexemeKind {
  switch (kind) {
    case "comment":
    case "number":
    case "symbol":
      return kind;
    case "keyword":
    case "name":
      return "word";
    case "quotedName":
      return "quoted";
    case "text":
      return first === "'" ? "string" : "quoted";
    case "wrong":
      if (!QUOTES.has(first)) return "unknown";
      return first === "'" ? "string" : "quoted";
  }
}

export const lexemesOf = (text: string): readonly Lexeme[] =>
  tokens(text, "query").map(({ kind, start, end }) => ({
    kind: kindOfToken(kind, text.charAt(start)),
    from: start,
    to: end,
    text: text.slice(start, end),
    isOpen: kind === "wrong" && QUOTES.has(text.charAt(start)),
  }));

/** The syntax of a query, as the server decides it: by the first word. */
export function dialectOf(lexemes: readonly Lexeme[]): Dialect {
  const [first, second] = lexemes.filter(({ kind }) => kind !== "comment");
  const word = first?.kind === "word" ? first.text.toLowerCase() : "";
  return (word === "select" || word === "with") && second?.text !== ":" ? "sql" : "btql";
}

/** The words of a query without comments. */
export const meaningful = (lexemes: readonly Lexeme[]): readonly Lexeme[] =>
  lexemes.filter(({ kind }) => kind !== "comment");

function kindOf(lexeme: Lexeme, before: Lexeme | undefined, after: Lexeme | undefined, dialect: Dialect): EditorToken["kind"] {
  switch (lexeme.kind) {
    case "comment":
    case "string":
    case "number":
    case "unknown":
      return lexeme.kind;
    case "quoted":
      return before?.text === "." || after?.text === "." ? "name" : "string";
    case "symbol":
      return "operator";
    case "word": {
      const word = lexeme.text.toLowerCase();
      if (before?.text === ".") return "name";
      if (after?.text === "(" && (FUNCTION_NAMES.has(word) || SOURCE_NAMES.has(word))) return "function";
      if (dialect === "btql" && after?.text === ":" && CLAUSE_NAMES.has(word)) return "keyword";
      if (dialect === "sql" && SQL_WORDS.has(word)) return "keyword";
      return WORDS.has(word) && after?.text !== "." ? "keyword" : "name";
    }
  }
}

/** The coloured parts of a query. */
export function coloursOf(text: string): readonly EditorToken[] {
  const lexemes = lexemesOf(text);
  const dialect = dialectOf(lexemes);
  return lexemes.map((lexeme, index) => ({
    from: lexeme.from,
    to: lexeme.to,
    kind: kindOf(lexeme, lexemes[index - 1], lexemes[index + 1], dialect),
  }));
}

/** Whether a query selects all columns by a star. */
export function hasStar(text: string): boolean {
  const lexemes = meaningful(lexemesOf(text));
  return lexemes.some(({ text: star }, index) => {
    const before = lexemes[index - 1]?.text.toLowerCase();
    const isStart = before === "select" || (before === ":" && lexemes[index - 2]?.text.toLowerCase() === "select");
    return star === "*" && (isStart || before === ",");
  });
}

/** The text inside the quotes of a string. */
export const unquoted = ({ text, isOpen }: Lexeme): string => text.slice(1, isOpen ? undefined : -1).replaceAll("''", "'");

/** The offset of a line and a column, both counted from 1 and the column in characters. */
export function offsetOf(text: string, line: number, column: number): number {
  const lines = text.split("\n");
  const index = Math.min(Math.max(line, 1), lines.length) - 1;
  const start = lines.slice(0, index).reduce((sum, one) => sum + one.length + 1, 0);
  const characters = [...(lines[index] ?? "")];
  return start + characters.slice(0, Math.max(column, 1) - 1).join("").length;
}

/** The part of the text that a fault at an offset is shown on: the token there, or the last one before it. */
export function extentAt(text: string, at: number): { readonly from: number; readonly to: number } {
  const lexemes = lexemesOf(text);
  const here = lexemes.find(({ from, to }) => from <= at && at < to);
  const last = lexemes.findLast(({ to }) => to <= at);
  const found = here ?? last;
  return found === undefined ? { from: at, to: at } : { from: found.from, to: found.to };
}
