// What an editor does on top of typing: pairs of brackets and quotes, indentation, keys, and which options fit.
import type { EditorKey, EditorOption } from "./EditorTypes";

/** A change of the text, and where the caret stands after it. */
export interface Edit {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
  /** The selection after the change. */
  readonly select: readonly [number, number];
}

const PAIRS: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}", "'": "'", '"': '"', "`": "`" };
const CLOSERS: ReadonlySet<string> = new Set(Object.values(PAIRS));
const QUOTES: ReadonlySet<string> = new Set(["'", '"', "`"]);

/** Options that are shown at most. */
const OPTIONS_MAX = 60;

const isWord = (letter: string): boolean => /[\p{L}\p{N}_$]/u.test(letter);

/** What typing a character does beyond writing it; null for nothing. */
export function typed(text: string, from: number, to: number, letter: string): Edit | null {
  const closer = PAIRS[letter];
  const next = text.charAt(to);
  if (from === to && CLOSERS.has(letter) && next === letter) {
    return { from, to: to + 1, insert: letter, select: [to + 1, to + 1] };
  }
  if (closer === undefined) return null;
  if (from < to) {
    return { from, to, insert: letter + text.slice(from, to) + closer, select: [from + 1, to + 1] };
  }
  const before = text.charAt(from - 1);
  if (isWord(next) || (QUOTES.has(letter) && (isWord(before) || before === letter))) return null;
  return { from, to, insert: letter + closer, select: [from + 1, from + 1] };
}

/** Deletes both of an empty pair; null where the caret is not in one. */
export function deleted(text: string, at: number): Edit | null {
  const before = text.charAt(at - 1);
  const isPair = at > 0 && PAIRS[before] !== undefined && PAIRS[before] === text.charAt(at);
  return isPair ? { from: at - 1, to: at + 1, insert: "", select: [at - 1, at - 1] } : null;
}

/** Breaks a line, and keeps the indentation of the line that is left. */
export function broken(text: string, from: number, to: number): Edit {
  const line = text.slice(text.lastIndexOf("\n", from - 1) + 1, from);
  const indent = /^[ \t]*/.exec(line)?.[0] ?? "";
  const insert = `\n${indent}`;
  return { from, to, insert, select: [from + insert.length, from + insert.length] };
}

interface PressedKey {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
}

/** Whether a key was pressed that is written as `Mod-Enter` is. */
export function isPressed(written: string, event: PressedKey, isMac: boolean): boolean {
  const words = written.split("-");
  const key = words.pop() ?? "";
  const has = (word: string): boolean => words.includes(word);
  const control = has("Ctrl") || (has("Mod") && !isMac);
  const command = has("Mod") && isMac;
  return (
    event.key.toLowerCase() === key.toLowerCase() &&
    event.ctrlKey === control &&
    event.metaKey === command &&
    event.altKey === has("Alt") &&
    (event.shiftKey === has("Shift") || key.length === 1)
  );
}

/** The key of a list that was pressed, if any. */
export const keyOf = (keys: readonly EditorKey[], event: PressedKey, isMac: boolean): EditorKey | undefined =>
  keys.find(({ key }) => isPressed(key, event, isMac));

/** How well a label fits what was typed: lower is better, null is not at all. */
export function fit(label: string, written: string): number | null {
  if (written === "") return 0;
  const name = label.toLowerCase();
  const sought = written.toLowerCase();
  if (label.startsWith(written)) return 0;
  if (name.startsWith(sought)) return 1;
  const at = name.indexOf(sought);
  if (at >= 0) return isWord(name.charAt(at - 1)) ? 3 : 2;
  let place = 0;
  for (const letter of sought) {
    place = name.indexOf(letter, place) + 1;
    if (place === 0) return null;
  }
  return 4;
}

/** The options that fit what was typed, the best first. */
export function fitting(options: readonly EditorOption[], written: string): readonly EditorOption[] {
  const found = options.flatMap((option, index) => {
    const rank = fit(option.label, written);
    return rank === null ? [] : [{ option, rank, index }];
  });
  found.sort(
    (left, right) =>
      left.rank - right.rank || (right.option.boost ?? 0) - (left.option.boost ?? 0) || left.index - right.index,
  );
  return found.slice(0, OPTIONS_MAX).map(({ option }) => option);
}

/** Whether what was typed last asks for options. */
export const asksForOptions = (text: string, at: number): boolean => /[\w$.:'"`-]$/.test(text.slice(Math.max(0, at - 1), at));

/** Whether a list of options stays valid for what is written between its start and the caret. */
export const staysValid = (written: string): boolean => /^[\w$-]*$/.test(written);
