// Reads what stands within a line of Markdown: code, emphasis, links, images and line breaks.

export type Inline =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "break" }
  | { readonly kind: "mark"; readonly mark: Mark; readonly content: readonly Inline[] }
  | { readonly kind: "link"; readonly url: string; readonly content: readonly Inline[] }
  | { readonly kind: "image"; readonly url: string; readonly alt: string };

export type Mark = "strong" | "em" | "del";

/** The longest address and the longest text of a link that are looked for. */
const URL_MAX = 2000;
const TEXT_MAX = 1000;

const PUNCTUATION = /[!-/:-@[-`{-~]/;

/** The address that a link may lead to; null for anything else than the web and mail. */
export function safeUrl(text: string): URL | null {
  try {
    const url = new URL(text);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

interface Reader {
  readonly text: string;
  at: number;
  plain: string;
  /** Where some letters are next, as far as that was looked for. */
  readonly ahead: Map<string, number>;
  /** What was read on each open level, with the mark that opened it. */
  readonly levels: { readonly mark: string; readonly content: Inline[] }[];
}

const top = (reader: Reader): Inline[] => reader.levels.at(-1)?.content ?? [];

function flush(reader: Reader): void {
  if (reader.plain !== "") top(reader).push({ kind: "text", text: reader.plain });
  reader.plain = "";
}

function add(reader: Reader, inline: Inline, length: number): true {
  flush(reader);
  top(reader).push(inline);
  reader.at += length;
  return true;
}

function readCode(reader: Reader): boolean {
  const { text, at } = reader;
  const ticks = /`+/y;
  ticks.lastIndex = at;
  const open = ticks.exec(text)?.[0] ?? "`";
  for (let from = at + open.length; ; ) {
    const end = text.indexOf(open, from);
    if (end < 0) break;
    const isLonger = text[end + open.length] === "`" || text[end - 1] === "`";
    if (!isLonger) {
      const inner = text.slice(at + open.length, end).replaceAll("\n", " ");
      const code = /^ .* $/.test(inner) && inner.trim() !== "" ? inner.slice(1, -1) : inner;
      return add(reader, { kind: "code", text: code }, end + open.length - at);
    }
    from = end + open.length;
  }
  reader.plain += open;
  reader.at += open.length;
  return true;
}

/** Whether a letter follows within a limit. Where it is next is remembered, so that a text is not searched again and again. */
function isAhead(reader: Reader, letter: string, limit: number): boolean {
  let next = reader.ahead.get(letter) ?? -1;
  if (next < reader.at) {
    const found = reader.text.indexOf(letter, reader.at);
    next = found < 0 ? reader.text.length + limit : found;
    reader.ahead.set(letter, next);
  }
  return next - reader.at < limit;
}

/** The end of a text in brackets that opens at a place; -1 if it has none. */
function closing(text: string, at: number, open: string, close: string, limit: number): number {
  let depth = 0;
  for (let index = at; index < text.length && index - at < limit; index += 1) {
    const letter = text[index];
    if (letter === "\\") index += 1;
    else if (letter === open) depth += 1;
    else if (letter === close) {
      depth -= 1;
      if (depth === 0) return index;
    }
  }
  return -1;
}

/** Reads `[text](url "title")`, with `!` before it an image. */
function readLink(reader: Reader, isImage: boolean): boolean {
  const { text, at } = reader;
  const from = at + (isImage ? 1 : 0);
  if (!isAhead(reader, "]", TEXT_MAX + 1) || !isAhead(reader, ")", TEXT_MAX + URL_MAX)) return false;
  const end = closing(text, from, "[", "]", TEXT_MAX);
  if (end < 0 || text[end + 1] !== "(") return false;
  const last = closing(text, end + 1, "(", ")", URL_MAX);
  if (last < 0) return false;
  const target = text.slice(end + 2, last).trim();
  const url = target.startsWith("<") ? target.slice(1).split(">")[0] ?? "" : (target.split(/\s/)[0] ?? "");
  const label = text.slice(from + 1, end);
  const inline: Inline = isImage
    ? { kind: "image", url, alt: label }
    : { kind: "link", url, content: inlinesOf(label.replaceAll(/!?\[/g, "(").replaceAll("]", ")")) };
  return add(reader, inline, last + 1 - at);
}

const AUTOLINK = /<((?:https?|mailto):[^\s<>]{1,2000})>/y;
const BARE = /https?:\/\/[^\s<>"'`)\]}]{1,2000}/y;

function readAddress(reader: Reader): boolean {
  const { text, at } = reader;
  const pattern = text[at] === "<" ? AUTOLINK : BARE;
  pattern.lastIndex = at;
  const found = pattern.exec(text);
  if (found === null) return false;
  const url = text[at] === "<" ? (found[1] ?? "") : found[0].replace(/[.,;:!?*_~]+$/, "");
  const length = text[at] === "<" ? found[0].length : url.length;
  return add(reader, { kind: "link", url, content: [{ kind: "text", text: url }] }, length);
}

const MARKS: Readonly<Record<string, Mark>> = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "del" };

const isSpace = (letter: string | undefined): boolean => letter === undefined || /\s/.test(letter);

const isWord = (letter: string | undefined): boolean => letter !== undefined && /[\p{L}\p{N}]/u.test(letter);

/** Puts what was read since a mark was opened into one piece below it. */
function closeLevel(reader: Reader, level: number): void {
  flush(reader);
  while (reader.levels.length > level + 1) {
    // a mark that was not closed is a text
    const lost = reader.levels.pop();
    if (lost !== undefined) top(reader).push({ kind: "text", text: lost.mark }, ...lost.content);
  }
  const closed = reader.levels.pop();
  const mark = MARKS[closed?.mark ?? ""];
  if (closed !== undefined && mark !== undefined) top(reader).push({ kind: "mark", mark, content: closed.content });
}

function readMark(reader: Reader): boolean {
  const { text, at } = reader;
  const letter = text[at] ?? "";
  const double = letter + letter;
  const mark = text.startsWith(double, at) ? double : letter;
  if (!Object.hasOwn(MARKS, mark)) return false;
  const before = text[at - 1];
  const after = text[at + mark.length];
  const isInWord = letter === "_" && isWord(before) && isWord(after);
  const level = reader.levels.findLastIndex((one) => one.mark === mark);
  if (level > 0 && !isSpace(before) && !isInWord) {
    closeLevel(reader, level);
    reader.at += mark.length;
    return true;
  }
  if (isSpace(after) || isInWord || (letter === "_" && isWord(before)) || reader.levels.length > 20) return false;
  flush(reader);
  reader.levels.push({ mark, content: [] });
  reader.at += mark.length;
  return true;
}

/** Reads what a letter may begin. Returns false if it is only a letter. */
function readSpecial(reader: Reader): boolean {
  const { text, at } = reader;
  const next = text[at + 1];
  switch (text[at]) {
    case "\\":
      if (next === "\n") return add(reader, { kind: "break" }, 2);
      if (next === undefined || !PUNCTUATION.test(next)) return false;
      reader.plain += next;
      reader.at += 2;
      return true;
    case "\n": {
      const isHard = reader.plain.endsWith("  ");
      reader.plain = reader.plain.trimEnd();
      return isHard ? add(reader, { kind: "break" }, 1) : add(reader, { kind: "text", text: "\n" }, 1);
    }
    case "`":
      return readCode(reader);
    case "!":
      return next === "[" && readLink(reader, true);
    case "[":
      return readLink(reader, false);
    case "<":
      return readAddress(reader);
    case "h":
      return !isWord(text[at - 1]) && readAddress(reader);
    case "*":
    case "_":
    case "~":
      return readMark(reader);
    default:
      return false;
  }
}

/** Reads a text without blocks. */
export function inlinesOf(text: string): readonly Inline[] {
  const reader: Reader = { text, at: 0, plain: "", ahead: new Map(), levels: [{ mark: "", content: [] }] };
  while (reader.at < text.length) {
    if (readSpecial(reader)) continue;
    reader.plain += text[reader.at] ?? "";
    reader.at += 1;
  }
  flush(reader);
  while (reader.levels.length > 1) {
    const lost = reader.levels.pop();
    if (lost !== undefined) top(reader).push({ kind: "text", text: lost.mark }, ...lost.content);
  }
  return top(reader);
}

export type Piece = { readonly text: string } | { readonly code: string };

const HIDDEN = /[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/;

/** Cuts a text at characters that cannot be seen, such as those that turn its direction, and names them. */
export function piecesOf(text: string): readonly Piece[] {
  if (!HIDDEN.test(text)) return [{ text }];
  const pieces: Piece[] = [];
  let plain = "";
  for (const letter of text) {
    const isJoiner = letter === "\u200d" && /\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]*$/u.test(plain.slice(-8));
    if (!HIDDEN.test(letter) || isJoiner) {
      plain += letter;
      continue;
    }
    if (plain !== "") pieces.push({ text: plain });
    plain = "";
    pieces.push({ code: `U+${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}` });
  }
  if (plain !== "") pieces.push({ text: plain });
  return pieces;
}
