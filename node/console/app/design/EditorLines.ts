// Cuts the text of an editor into lines, and each line into parts that look alike.
import type { EditorHint, EditorMark, EditorToken, EditorTokenKind } from "./EditorTypes";

/** Longer texts are shown without colours, so that typing stays fast. */
export const COLOURED_LENGTH = 30_000;

/** A part of a line whose characters look alike. */
export interface LinePart {
  readonly text: string;
  readonly kind: EditorTokenKind | null;
  readonly severity: EditorMark["severity"] | null;
  /** What is said about it; empty for nothing. */
  readonly message: string;
}

export interface Line {
  readonly parts: readonly LinePart[];
  /** Words shown behind it. */
  readonly hints: readonly string[];
}

export interface Drawn {
  readonly tokens: readonly EditorToken[];
  readonly marks: readonly EditorMark[];
  readonly hints: readonly EditorHint[];
}

/** A mark without extent stands on the character before it, or at the start on the first one. */
function extended(mark: EditorMark, length: number): EditorMark {
  const to = Math.min(Math.max(mark.from, mark.to), length);
  const from = Math.min(mark.from, to);
  if (from < to) return { ...mark, from, to };
  return { ...mark, from: Math.max(0, from - 1), to: Math.max(from, Math.min(1, length)) };
}

/** The offsets inside a line at which something begins or ends. */
function cutsOf(start: number, end: number, spans: readonly { readonly from: number; readonly to: number }[]): number[] {
  const cuts = new Set([start, end]);
  for (const { from, to } of spans) {
    if (from > start && from < end) cuts.add(from);
    if (to > start && to < end) cuts.add(to);
  }
  return [...cuts].sort((left, right) => left - right);
}

/** What of an ordered list touches a line; `first` is where the search begins. */
function touching<Span extends { readonly from: number; readonly to: number }>(
  spans: readonly Span[],
  first: number,
  start: number,
  end: number,
): { readonly found: readonly Span[]; readonly next: number } {
  let index = first;
  while (index < spans.length && (spans[index]?.to ?? 0) <= start) index += 1;
  const found: Span[] = [];
  for (let at = index; at < spans.length; at += 1) {
    const span = spans[at];
    if (span === undefined || span.from >= end) break;
    found.push(span);
  }
  return { found, next: index };
}

/** Cuts a text into lines. Tokens are in order and do not overlap; marks may. */
export function linesOf(text: string, { tokens, marks, hints }: Drawn): readonly Line[] {
  const shown = marks.map((mark) => extended(mark, text.length));
  const coloured = text.length > COLOURED_LENGTH ? [] : tokens;
  const lines: Line[] = [];
  let start = 0;
  let nextToken = 0;
  for (const line of text.split("\n")) {
    const end = start + line.length;
    const { found, next } = touching(coloured, nextToken, start, end);
    nextToken = next;
    const marked = shown.filter(({ from, to }) => from < end && to > start);
    const cuts = cutsOf(start, end, [...found, ...marked]);
    const parts: LinePart[] = [];
    let token = 0;
    for (let cut = 0; cut + 1 < cuts.length; cut += 1) {
      const from = cuts[cut] ?? start;
      const to = cuts[cut + 1] ?? end;
      while (token < found.length && (found[token]?.to ?? 0) <= from) token += 1;
      const over = found[token];
      const kind = over !== undefined && over.from <= from ? over.kind : null;
      const noted = marked.filter((mark) => mark.from <= from && mark.to >= to);
      const severity = noted.some((mark) => mark.severity === "error") ? "error" : (noted[0]?.severity ?? null);
      const message = noted.map((mark) => mark.message).join("\n");
      if (to > from) parts.push({ text: text.slice(from, to), kind, severity, message });
    }
    const words = hints.filter(({ at }) => at >= start && at <= end).map((hint) => hint.text);
    lines.push({ parts, hints: words });
    start = end + 1;
  }
  return lines;
}

const sameParts = (left: LinePart, right: LinePart | undefined): boolean =>
  right !== undefined &&
  left.text === right.text &&
  left.kind === right.kind &&
  left.severity === right.severity &&
  left.message === right.message;

/** Whether two lines look alike. */
export const sameLines = (left: Line, right: Line): boolean =>
  left.parts.length === right.parts.length &&
  left.hints.length === right.hints.length &&
  left.parts.every((part, index) => sameParts(part, right.parts[index])) &&
  left.hints.every((hint, index) => hint === right.hints[index]);
