// What is typed above the grid: words to search for, or an expression that filters.
import { called, literal } from "../../btql";

/** What makes a text an expression: a comparison, a call, or a word between values. */
const EXPRESSION = /[=<>()]|\s(?:is|in|and|or|not|like|ilike|match|contains|includes)\s/i;

const SEARCH = /^search\('((?:[^'\\]|''|\\\\)*)'\)$/;

/** The expression that a typed text means. */
export function filterOfTyped(typed: string): string {
  const text = typed.trim();
  return text === "" || EXPRESSION.test(text) ? text : called("search", literal(text));
}

/** The text to show for an expression: a search shows its words alone. */
export function typedOfFilter(filter: string): string {
  const words = SEARCH.exec(filter)?.[1];
  if (words === undefined) return filter;
  const text = words.replaceAll("''", "'").replaceAll("\\\\", "\\");
  return filterOfTyped(text) === filter ? text : filter;
}
