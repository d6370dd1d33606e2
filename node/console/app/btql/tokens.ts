// Cuts texts of the query language into tokens: for colours, for completion, and to find where a condition ends.

export type TokenKind = "comment" | "keyword" | "name" | "quotedName" | "text" | "number" | "symbol" | "wrong";

export interface Token {
  readonly kind: TokenKind;
  readonly start: number;
  readonly end: number;
}

const KEYWORDS: ReadonlySet<string> = new Set(
  [
    "and or not in is as null true false like ilike match includes contains between case when then else end cast",
    "interval distinct select from where group by order having limit offset asc desc nulls first last with unpivot",
    "pivot for any tablesample percent rows replace settings dimensions measures infer filter span_filter trace_filter",
    "final_filter final_dimensions final_measures sample sort cursor preview_length inference_budget comparison_key",
    "weighted_scores custom_columns isnull isnotnull extract exists spans traces summary",
  ].flatMap((line) => line.split(" ")),
);

/** Words that are clauses or shapes in a query and plain names in an expression. */
const ONLY_IN_QUERIES: ReadonlySet<string> = new Set(
  [
    "select from where group by order having limit offset asc desc nulls first last with unpivot pivot for any",
    "tablesample percent rows replace settings dimensions measures infer filter span_filter trace_filter final_filter",
    "final_dimensions final_measures sample sort cursor preview_length inference_budget comparison_key weighted_scores",
    "custom_columns spans traces summary",
  ].flatMap((line) => line.split(" ")),
);

/** The language of a text: one expression, or a query with its clauses. */
export type TextKind = "expression" | "query";

const PATTERN = new RegExp(
  [
    String.raw`(?<blank>\s+)`,
    String.raw`(?<comment>--[^\n]*|/\*[^]*?\*/)`,
    String.raw`(?<text>'(?:''|\\['\\]|[^'])*'|"(?:""|\\[^]|[^"])*")`,
    "(?<quotedName>`(?:``|[^`])*`)",
    String.raw`(?<number>(?:\d+(?:\.\d+)?|(?<![\p{Alphabetic}\p{N}_$\]"${"`"})])\.\d+)(?:[eE][+-]?\d+)?)`,
    String.raw`(?<word>[\p{Alphabetic}_][\p{Alphabetic}\p{N}_$]*)`,
    String.raw`(?<symbol><!=>|!~\*|<=>|->>|<=|>=|<>|!=|=>|==|\|\||&&|->|::|!~|~\*|[=<>+\-*/%~?:,.()[\]{}|;])`,
    String.raw`(?<wrong>[^])`,
  ].join("|"),
  "uy",
);

/** The tokens of a text in their order, without what is blank. A text without an end is wrong up to the end. */
export function tokens(text: string, kind: TextKind = "expression"): readonly Token[] {
  const found: Token[] = [];
  const pattern = new RegExp(PATTERN);
  let isAfterPoint = false;
  while (pattern.lastIndex < text.length) {
    const start = pattern.lastIndex;
    const groups = pattern.exec(text)?.groups;
    if (groups === undefined) break;
    const token = tokenOf(groups, start, pattern.lastIndex, kind, isAfterPoint);
    if (token === null) continue;
    isAfterPoint = groups["symbol"] === ".";
    const isOpen = token.kind === "wrong" && ["'", '"', "`"].includes(text.charAt(start));
    found.push(isOpen ? { ...token, end: text.length } : token);
    if (isOpen) break;
  }
  return found;
}

type Groups = Readonly<Record<string, string | undefined>>;

function tokenOf(groups: Groups, start: number, end: number, kind: TextKind, isAfterPoint: boolean): Token | null {
  const { blank, word } = groups;
  if (blank !== undefined) return null;
  if (word === undefined) {
    const kinds = ["comment", "text", "quotedName", "number", "symbol"] as const;
    return { kind: kinds.find((one) => groups[one] !== undefined) ?? "wrong", start, end };
  }
  const lower = word.toLowerCase();
  const isKeyword = !isAfterPoint && KEYWORDS.has(lower) && (kind === "query" || !ONLY_IN_QUERIES.has(lower));
  return { kind: isKeyword ? "keyword" : "name", start, end };
}

const OPENING: ReadonlySet<string> = new Set(["(", "[", "{", "case"]);
const CLOSING: ReadonlySet<string> = new Set([")", "]", "}", "end"]);

/** A token outside all parentheses, with its text in lower case. */
export interface OuterToken extends Token {
  readonly word: string;
}

/** The tokens of an expression that stand outside parentheses, brackets and CASE; null if these do not match. */
export function outerTokens(text: string): readonly OuterToken[] | null {
  const outer: OuterToken[] = [];
  let depth = 0;
  for (const token of tokens(text)) {
    if (token.kind === "wrong") return null;
    const isWord = token.kind === "keyword" || token.kind === "symbol";
    const word = isWord ? text.slice(token.start, token.end).toLowerCase() : "";
    if (OPENING.has(word)) depth += 1;
    else if (CLOSING.has(word)) depth -= 1;
    else if (depth === 0 && token.kind !== "comment") outer.push({ ...token, word });
    if (depth < 0) return null;
  }
  return depth === 0 ? outer : null;
}

/** Cuts an expression at the ANDs that join it. The one of BETWEEN joins nothing. Null if the text is not well-formed. */
export function splitConjunction(text: string): readonly string[] | null {
  const outer = outerTokens(text);
  if (outer === null) return null;
  const parts: string[] = [];
  let [start, open] = [0, 0];
  for (const { word, start: at, end } of outer) {
    if (word === "between") open += 1;
    if (word !== "and") continue;
    if (open > 0) open -= 1;
    else {
      parts.push(text.slice(start, at).trim());
      start = end;
    }
  }
  parts.push(text.slice(start).trim());
  return parts;
}
