// What the server remarks on a query, where in its text that is, and what can be done about it.
import type { EditorMark } from "../../design/EditorTypes";
import type { Warning } from "../../api/query";
import { dialectOf, extentAt, lexemesOf, meaningful, offsetOf, type Lexeme } from "./lexer";
import type { Fault } from "./queries";
import { FUNCTIONS } from "./words";

/** A change of the text that does away with a remark. */
export interface Fix {
  readonly title: string;
  readonly text: string;
}

export interface Remark extends EditorMark {
  readonly code: string;
  /** Where it stands, from 1; 0 for remarks on the whole query. */
  readonly line: number;
  readonly column: number;
  readonly fix: Fix | null;
}

/** How many edits lie between two words, up to `most` + 1. */
export function editsBetween(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let before = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (before[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(change, (before[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    before = row;
  }
  return before[b.length] ?? most + 1;
}

/** The known word that a wrong one was probably meant to be. */
export function nearest(word: string, known: readonly string[]): string | null {
  const most = word.length < 4 ? 1 : 2;
  const ranked = known
    .map((one) => ({ one, edits: editsBetween(word.toLowerCase(), one.toLowerCase(), most) }))
    .filter(({ edits }) => edits > 0 && edits <= most)
    .sort((a, b) => a.edits - b.edits);
  return ranked[0]?.one ?? null;
}

const replaced = (text: string, from: number, to: number, by: string): string => text.slice(0, from) + by + text.slice(to);

const WEEK = "created >= now() - interval 7 day";

const SQL_AFTER_WHERE = ["group", "having", "order", "limit", "offset", "pivot", "settings"];

/** Where the filter of a query stands: its expression, or the place where a filter can be put. */
function filterOf(text: string): { readonly from: number; readonly to: number; readonly isThere: boolean } {
  const lexemes = meaningful(lexemesOf(text));
  const isSql = dialectOf(lexemes) === "sql";
  const isEnd = ({ kind, text: word }: Lexeme, index: number): boolean =>
    isSql
      ? kind === "word" && SQL_AFTER_WHERE.includes(word.toLowerCase())
      : word === "|" || (kind === "word" && lexemes[index + 1]?.text === ":" && lexemes[index - 1]?.text !== "?");
  const start = lexemes.findIndex(({ kind, text: word }, index) =>
    isSql
      ? kind === "word" && word.toLowerCase() === "where"
      : kind === "word" && word.toLowerCase() === "filter" && lexemes[index + 1]?.text === ":",
  );
  const endOfText = lexemes.at(-1)?.to ?? 0;
  if (start < 0) {
    const end = isSql ? lexemes.findIndex(isEnd) : -1;
    const at = end < 0 ? endOfText : (lexemes[end - 1]?.to ?? endOfText);
    return { from: at, to: at, isThere: false };
  }
  const first = start + (isSql ? 1 : 2);
  const end = lexemes.findIndex((lexeme, index) => index > first && isEnd(lexeme, index));
  const last = lexemes[end < 0 ? lexemes.length - 1 : end - 1];
  return { from: lexemes[first]?.from ?? endOfText, to: last?.to ?? endOfText, isThere: true };
}

/** Adds a condition to the filter of a query. */
export function withCondition(text: string, condition: string): string {
  const lexemes = lexemesOf(text);
  const isSql = dialectOf(lexemes) === "sql";
  const { from, to, isThere } = filterOf(text);
  if (!isThere) return replaced(text, from, to, isSql ? `\nWHERE ${condition}` : `\n| filter: ${condition}`);
  const before = text.slice(from, to);
  const isJoined = lexemes.some(
    (one) => one.kind === "word" && one.from >= from && one.to <= to && one.text.toLowerCase() === "or",
  );
  const and = isSql ? "AND" : "and";
  return replaced(text, from, to, `${condition} ${and} ${isJoined ? `(${before})` : before}`);
}

const lineOf = (text: string, at: number): { readonly line: number; readonly column: number } => {
  const before = text.slice(0, at).split("\n");
  return { line: before.length, column: [...(before.at(-1) ?? "")].length + 1 };
};

/** The server's words as a sentence: they may start small, because a place goes before them. */
const sentence = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

/** A fault of the text, at the word that the server names. */
export function remarkOfFault(text: string, fault: Fault): Remark {
  const at = offsetOf(text, fault.line, fault.column);
  const extent = extentAt(text, at);
  const wrong = /^there is no function `([^`]+)`/.exec(fault.message)?.[1];
  const right = wrong === undefined ? null : nearest(wrong, FUNCTIONS.map(({ name }) => name));
  const fix =
    right === null || wrong === undefined || text.slice(extent.from, extent.to).toLowerCase() !== wrong.toLowerCase()
      ? null
      : { title: `Write ${right}`, text: replaced(text, extent.from, extent.to, right) };
  return { ...extent, severity: "error", code: "", message: sentence(fault.message), line: fault.line, column: fault.column, fix };
}

function unknownField(text: string, warning: Warning, columns: readonly string[]): Remark | null {
  const name = /`([^`]+)`/.exec(warning.message)?.[1];
  const word = name?.split(".")[0] ?? "";
  const lexeme = lexemesOf(text).find((one) => one.kind === "word" && one.text === word);
  if (lexeme === undefined) return null;
  const right = nearest(word, columns);
  const fix = right === null ? null : { title: `Write ${right}`, text: replaced(text, lexeme.from, lexeme.to, right) };
  return {
    from: lexeme.from,
    to: lexeme.to,
    severity: "warning",
    code: warning.code,
    message: sentence(warning.message),
    ...lineOf(text, lexeme.from),
    fix,
  };
}

/** The remarks on a result. Columns are those that the source is known to have. */
export function remarksOf(text: string, warnings: readonly Warning[], columns: readonly string[]): readonly Remark[] {
  return warnings.map((warning) => {
    const field = warning.code === "unknownField" ? unknownField(text, warning, columns) : null;
    if (field !== null) return field;
    const isScan = warning.code === "missingSegmentEliminationSpecs";
    return {
      from: 0,
      to: 0,
      severity: "warning",
      code: warning.code,
      message: sentence(warning.message),
      line: 0,
      column: 0,
      fix: isScan ? { title: "Read the last 7 days only", text: withCondition(text, WEEK) } : null,
    };
  });
}
