// Reads Markdown into a tree: headings, paragraphs, lists, quotes, tables, code, and what stands within a line.
//
// HTML stays text. Every step moves forward in the text, and nesting has a limit, so that no text takes long.
import { inlinesOf, type Inline } from "./MarkdownLine";

export type Block =
  | { readonly kind: "heading"; readonly level: number; readonly content: readonly Inline[] }
  | { readonly kind: "paragraph"; readonly content: readonly Inline[] }
  | { readonly kind: "code"; readonly language: string; readonly text: string }
  | { readonly kind: "quote"; readonly blocks: readonly Block[] }
  | { readonly kind: "list"; readonly start: number | null; readonly items: readonly ListItem[] }
  | { readonly kind: "table"; readonly aligns: readonly Align[]; readonly rows: readonly (readonly (readonly Inline[])[])[] }
  | { readonly kind: "rule" };

export interface ListItem {
  /** Whether a task is done; null if the item is no task. */
  readonly isDone: boolean | null;
  readonly blocks: readonly Block[];
}

export type Align = "start" | "center" | "end";

/** Deeper quotes and lists are read as paragraphs. */
const DEPTH_MAX = 12;

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}>[ ]?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:([ \t]+)|$)/;
const DIVIDER = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const TASK = /^\[([ xX])\][ \t]+/;

interface Lines {
  readonly lines: readonly string[];
  at: number;
}

const isBlank = (line: string | undefined): boolean => line === undefined || line.trim() === "";

function readCode(from: Lines, fence: string, language: string): Block {
  const mark = fence[0] ?? "`";
  const text: string[] = [];
  for (from.at += 1; from.at < from.lines.length; from.at += 1) {
    const line = from.lines[from.at] ?? "";
    const trimmed = line.trim();
    if (trimmed.length >= fence.length && [...trimmed].every((letter) => letter === mark)) {
      from.at += 1;
      break;
    }
    text.push(line);
  }
  return { kind: "code", language, text: text.join("\n") };
}

function readIndented(from: Lines): Block {
  const text: string[] = [];
  while (from.at < from.lines.length && (/^ {4}|^\t/.test(from.lines[from.at] ?? "") || isBlank(from.lines[from.at]))) {
    text.push((from.lines[from.at] ?? "").replace(/^(?: {4}|\t)/, ""));
    from.at += 1;
  }
  return { kind: "code", language: "", text: text.join("\n").trimEnd() };
}

function readQuote(from: Lines, depth: number): Block {
  const inner: string[] = [];
  while (from.at < from.lines.length) {
    const line = from.lines[from.at] ?? "";
    if (!QUOTE.test(line) && (isBlank(line) || startsBlock(line))) break;
    inner.push(line.replace(QUOTE, ""));
    from.at += 1;
  }
  return { kind: "quote", blocks: blocksIn(inner, depth + 1) };
}

const indentOf = (line: string): number => line.length - line.trimStart().length;

/** Reads one item: its first line without the mark, and the lines that belong to it by their indent. */
function readItem(from: Lines, depth: number): ListItem {
  const line = from.lines[from.at] ?? "";
  const [whole = "", , , space = ""] = ITEM.exec(line) ?? [];
  const indent = space.length > 4 || space === "" ? whole.trimEnd().length + 1 : whole.length;
  const first = line.slice(Math.min(indent, line.length));
  const task = TASK.exec(first);
  const inner = [task === null ? first : first.slice(task[0].length)];
  for (from.at += 1; from.at < from.lines.length; from.at += 1) {
    const next = from.lines[from.at] ?? "";
    if (isBlank(next)) {
      if (isBlank(from.lines[from.at + 1]) || indentOf(from.lines[from.at + 1] ?? "") < indent) break;
      inner.push("");
    } else if (indentOf(next) >= indent) inner.push(next.slice(indent));
    else if (startsBlock(next) || isBlank(inner.at(-1))) break;
    else inner.push(next.trimStart());
  }
  return { isDone: task === null ? null : task[1] !== " ", blocks: blocksIn(inner, depth + 1) };
}

function readList(from: Lines, depth: number): Block {
  const marker = ITEM.exec(from.lines[from.at] ?? "")?.[2] ?? "-";
  const kind = marker.at(-1);
  const start = /^\d/.test(marker) ? Number.parseInt(marker, 10) : null;
  const items: ListItem[] = [];
  while (from.at < from.lines.length) {
    const line = from.lines[from.at] ?? "";
    if (isBlank(line)) {
      const next = from.lines[from.at + 1];
      if (next === undefined || ITEM.exec(next)?.[2]?.at(-1) !== kind) break;
      from.at += 1;
    } else if (ITEM.exec(line)?.[2]?.at(-1) === kind && !RULE.test(line)) items.push(readItem(from, depth));
    else break;
  }
  return { kind: "list", start, items };
}

/** The cells of a row. A bar after a backslash or in code is a letter. */
function cellsOf(line: string): readonly string[] {
  const cells: string[] = [];
  let cell = "";
  let isCode = false;
  const text = line.trim().replace(/^\|/, "");
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at] ?? "";
    if (letter === "`") isCode = !isCode;
    if (letter === "\\" && text[at + 1] === "|") {
      cell += "|";
      at += 1;
    } else if (letter === "|" && !isCode) {
      cells.push(cell.trim());
      cell = "";
    } else cell += letter;
  }
  if (cell.trim() !== "") cells.push(cell.trim());
  return cells;
}

const alignOf = (cell: string): Align => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "end") : "start");

function readTable(from: Lines): Block {
  const head = cellsOf(from.lines[from.at] ?? "");
  const aligns = cellsOf(from.lines[from.at + 1] ?? "").map(alignOf);
  const rows = [head.map(inlinesOf)];
  for (from.at += 2; from.at < from.lines.length && (from.lines[from.at] ?? "").includes("|"); from.at += 1) {
    const cells = cellsOf(from.lines[from.at] ?? "");
    rows.push(head.map((_, column) => inlinesOf(cells[column] ?? "")));
  }
  return { kind: "table", aligns, rows };
}

/** Whether a line begins something else than the rest of a paragraph. */
const startsBlock = (line: string): boolean =>
  FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);

const isTable = ({ lines, at }: Lines): boolean =>
  (lines[at] ?? "").includes("|") &&
  (lines[at + 1] ?? "").includes("-") &&
  DIVIDER.test(lines[at + 1] ?? "") &&
  cellsOf(lines[at] ?? "").length === cellsOf(lines[at + 1] ?? "").length;

function readParagraph(from: Lines): Block {
  const text = [(from.lines[from.at] ?? "").trimStart()];
  for (from.at += 1; from.at < from.lines.length; from.at += 1) {
    const line = from.lines[from.at] ?? "";
    const under = /^ {0,3}(=+|-+)[ \t]*$/.exec(line)?.[1];
    if (under !== undefined) {
      from.at += 1;
      return { kind: "heading", level: under.startsWith("=") ? 1 : 2, content: inlinesOf(text.join("\n").trimEnd()) };
    }
    if (isBlank(line) || startsBlock(line)) break;
    text.push(line.trimStart());
  }
  return { kind: "paragraph", content: inlinesOf(text.join("\n").trimEnd()) };
}

function readBlock(from: Lines, depth: number): Block {
  const line = from.lines[from.at] ?? "";
  const [, fence, language = ""] = FENCE.exec(line) ?? [];
  if (fence !== undefined) return readCode(from, fence, language);
  if (/^ {4}|^\t/.test(line)) return readIndented(from);
  const hashes = HEADING.exec(line);
  if (hashes !== null) {
    from.at += 1;
    const text = line.slice(hashes[0].length).trim().replace(/(?:^|[ \t])#+$/, "");
    return { kind: "heading", level: hashes[1]?.length ?? 1, content: inlinesOf(text) };
  }
  if (RULE.test(line)) {
    from.at += 1;
    return { kind: "rule" };
  }
  if (depth < DEPTH_MAX && QUOTE.test(line)) return readQuote(from, depth);
  if (depth < DEPTH_MAX && ITEM.test(line)) return readList(from, depth);
  return isTable(from) ? readTable(from) : readParagraph(from);
}

function blocksIn(lines: readonly string[], depth: number): readonly Block[] {
  const from: Lines = { lines, at: 0 };
  const blocks: Block[] = [];
  while (from.at < lines.length) {
    if (isBlank(lines[from.at])) from.at += 1;
    else blocks.push(readBlock(from, depth));
  }
  return blocks;
}

/** Reads a text in Markdown. */
export const markdownOf = (text: string): readonly Block[] => blocksIn(text.replace(/\r\n?/g, "\n").split("\n"), 0);
