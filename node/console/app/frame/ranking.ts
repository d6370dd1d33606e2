// Which entries of the palette fit what is typed, the best first.

export interface Entry {
  readonly id: string;
  readonly title: string;
  readonly group: string;
  readonly keys?: string | undefined;
  readonly run: () => void;
}

const isWordStart = (text: string, index: number): boolean => index === 0 || !/[\p{L}\p{N}]/u.test(text[index - 1] ?? "");

/**
 * How well a title fits: 0 if it does not. All typed words must occur; starts of the title count more than starts of
 * words, and those more than places inside a word.
 */
export function fit(title: string, typed: string): number {
  const text = title.toLowerCase();
  const words = typed.toLowerCase().split(/\s+/).filter((word) => word !== "");
  let total = 1;
  for (const word of words) {
    let best = 0;
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      best = Math.max(best, at === 0 ? 4 : isWordStart(text, at) ? 3 : 1);
    }
    if (best === 0) return 0;
    total += best;
  }
  return total;
}

/** The entries that fit, in order of fit and otherwise as they came, at most `limit`. */
export function ranked<Kind extends Pick<Entry, "title" | "group">>(
  entries: readonly Kind[],
  typed: string,
  limit: number,
): readonly Kind[] {
  return entries
    .map((entry, index) => ({ entry, index, fit: Math.max(fit(entry.title, typed), fit(entry.group, typed) && 1) }))
    .filter((one) => one.fit > 0)
    .sort((a, b) => b.fit - a.fit || a.index - b.index)
    .slice(0, limit)
    .map((one) => one.entry);
}
