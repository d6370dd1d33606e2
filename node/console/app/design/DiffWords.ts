// Compares two texts: line by line, and word by word within the lines that differ.

export interface DiffPart {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
}

/** How many changes are looked for. Texts that differ more are shown as replaced. */
const CHANGES_MAX = 800;

const WORDS = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;

const wordsOf = (text: string): readonly string[] => text.match(WORDS) ?? [];

/** The lines of a text, each with its end. */
const linesOf = (text: string): readonly string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

type Trail = readonly Int32Array[];

/** Looks for the fewest changes between two lists (Myers, 1986); null if there are more than can be afforded. */
function trailOf(a: readonly string[], b: readonly string[]): Trail | null {
  const most = Math.min(a.length + b.length, CHANGES_MAX);
  const ends = new Int32Array(2 * most + 3);
  const trail: Int32Array[] = [];
  for (let changes = 0; changes <= most; changes += 1) {
    trail.push(ends.slice(most + 1 - changes - 1, most + 1 + changes + 2));
    for (let diagonal = -changes; diagonal <= changes; diagonal += 2) {
      const [left, right] = [ends[most + diagonal] ?? 0, ends[most + diagonal + 2] ?? 0];
      const isDown = diagonal === -changes || (diagonal !== changes && left < right);
      let x = isDown ? right : left + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x += 1;
      ends[most + 1 + diagonal] = x;
      if (x >= a.length && x - diagonal >= b.length) return trail;
    }
  }
  return null;
}

/** Walks a trail back, and returns the parts from first to last. */
function walked(a: readonly string[], b: readonly string[], trail: Trail): DiffPart[] {
  const parts: DiffPart[] = [];
  let [x, y] = [a.length, b.length];
  for (let changes = trail.length - 1; changes >= 0; changes -= 1) {
    const ends = trail[changes] ?? new Int32Array();
    const endAt = (diagonal: number): number => ends[diagonal + changes + 1] ?? 0;
    const diagonal = x - y;
    const isDown = diagonal === -changes || (diagonal !== changes && endAt(diagonal - 1) < endAt(diagonal + 1));
    const from = isDown ? diagonal + 1 : diagonal - 1;
    const fromX = changes === 0 ? 0 : endAt(from);
    const fromY = changes === 0 ? 0 : fromX - from;
    while (x > fromX && y > fromY) {
      x -= 1;
      y -= 1;
      parts.push({ kind: "same", text: a[x] ?? "" });
    }
    if (changes === 0) break;
    if (isDown) parts.push({ kind: "added", text: b[(y -= 1)] ?? "" });
    else parts.push({ kind: "removed", text: a[(x -= 1)] ?? "" });
  }
  return parts.reverse();
}

/** Compares two lists of texts; what begins and ends both is set aside first. */
function compared(a: readonly string[], b: readonly string[]): readonly DiffPart[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const [before, after] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const trail = trailOf(before, after);
  const middle: readonly DiffPart[] =
    trail === null
      ? [{ kind: "removed", text: before.join("") }, { kind: "added", text: after.join("") }]
      : walked(before, after, trail);
  const same = (text: string): DiffPart => ({ kind: "same", text });
  return [same(a.slice(0, start).join("")), ...middle, same(a.slice(a.length - end).join(""))];
}

/** Joins neighbours of one kind, with what was removed before what was added. */
function joined(parts: readonly DiffPart[]): readonly DiffPart[] {
  const found: DiffPart[] = [];
  let [removed, added] = ["", ""];
  const flush = (): void => {
    if (removed !== "") found.push({ kind: "removed", text: removed });
    if (added !== "") found.push({ kind: "added", text: added });
    [removed, added] = ["", ""];
  };
  for (const { kind, text } of parts) {
    if (text === "") continue;
    if (kind === "removed") removed += text;
    else if (kind === "added") added += text;
    else {
      flush();
      const last = found.at(-1);
      if (last?.kind === "same") found[found.length - 1] = { kind, text: last.text + text };
      else found.push({ kind, text });
    }
  }
  flush();
  return found;
}

/** The parts of two texts: what is the same, what was removed, and what was added. */
export function diffOf(before: string, after: string): readonly DiffPart[] {
  const lines = joined(compared(linesOf(before), linesOf(after)));
  const parts: DiffPart[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const part = lines[at];
    const next = lines[at + 1];
    if (part?.kind === "removed" && next?.kind === "added") {
      parts.push(...compared(wordsOf(part.text), wordsOf(next.text)));
      at += 1;
    } else if (part !== undefined) parts.push(part);
  }
  return joined(parts);
}

/** A line of two texts side by side; null where a side has none. */
export interface LinePair {
  readonly before: readonly DiffPart[] | null;
  readonly after: readonly DiffPart[] | null;
  readonly isSame: boolean;
}

/** A text cut into its lines, without their ends. */
const cutLines = (text: string): readonly string[] => linesOf(text).map((line) => line.replace(/\n$/, ""));

/** Two lines that stand beside each other, each with its own words marked. */
function pairOf(before: string | undefined, after: string | undefined): LinePair {
  const words = joined(compared(wordsOf(before ?? ""), wordsOf(after ?? "")));
  const side = (kind: DiffPart["kind"]): readonly DiffPart[] => words.filter((part) => part.kind === "same" || part.kind === kind);
  return {
    before: before === undefined ? null : side("removed"),
    after: after === undefined ? null : side("added"),
    isSame: false,
  };
}

/** The lines of two texts side by side. */
export function linePairs(before: string, after: string): readonly LinePair[] {
  const parts = joined(compared(linesOf(before), linesOf(after)));
  const pairs: LinePair[] = [];
  for (let at = 0; at < parts.length; at += 1) {
    const part = parts[at];
    if (part === undefined) continue;
    if (part.kind === "same") {
      for (const text of cutLines(part.text)) {
        const line = [{ kind: "same", text }] as const;
        pairs.push({ before: line, after: line, isSame: true });
      }
      continue;
    }
    const next = parts[at + 1];
    const isReplaced = part.kind === "removed" && next?.kind === "added";
    if (isReplaced) at += 1;
    const left = part.kind === "removed" ? cutLines(part.text) : [];
    const right = isReplaced ? cutLines(next.text) : part.kind === "added" ? cutLines(part.text) : [];
    for (let line = 0; line < Math.max(left.length, right.length); line += 1) pairs.push(pairOf(left[line], right[line]));
  }
  return pairs;
}

/** How many words were added and removed. */
export function diffCounts(parts: readonly DiffPart[]): { readonly added: number; readonly removed: number } {
  const count = (kind: DiffPart["kind"]): number =>
    parts.filter((part) => part.kind === kind).reduce((sum, part) => sum + (part.text.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0), 0);
  return { added: count("added"), removed: count("removed") };
}

/** Lines around a change that stay in view. */
const CONTEXT = 3;

/** Cuts a part that is the same, if it is long: its first and last lines, and how many are between. */
export function foldedSame(text: string, isFirst: boolean, isLast: boolean) {
  const lines = text.split("\n");
  const head = isFirst ? 0 : CONTEXT;
  const tail = isLast ? 0 : CONTEXT;
  const hidden = lines.length - head - tail;
  if (hidden <= CONTEXT) return null;
  return {
    head: lines.slice(0, head).map((line) => `${line}\n`).join(""),
    hidden,
    tail: lines.slice(lines.length - tail).join("\n"),
  };
}
