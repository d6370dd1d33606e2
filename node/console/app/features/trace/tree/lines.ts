// The lines of the tree that are shown: folded spans hide what is below them, many equal leaves are one line, and a
// filter leaves matches and what is above them.
import { NONE, type TraceTree } from "./model";

/** A line: one span, or several leaves of the same name below one parent. */
export interface Line {
  readonly span: number;
  /** The further spans of a group, after `span`; empty for a line of one span. */
  readonly others: readonly number[];
  readonly depth: number;
  /** When the first of its spans begins and the last ends. */
  readonly begin: number;
  readonly end: number;
  /** The lengths of its shortest and its longest span, in seconds. */
  readonly shortest: number;
  readonly longest: number;
  readonly hasError: boolean;
  /** Whether there is something below the span. */
  readonly hasBelow: boolean;
  readonly isFolded: boolean;
}

/** Number of equal leaves from which they are shown as one line. */
export const GROUP_MIN = 50;

export interface Folding {
  readonly folded: ReadonlySet<number>;
  /** Groups, by their first span, whose spans are shown one by one. */
  readonly spread: ReadonlySet<number>;
  /** The spans that are shown besides those above them; null for all. */
  readonly only: ReadonlySet<number> | null;
}

export const NOTHING_FOLDED: Folding = { folded: new Set(), spread: new Set(), only: null };

/** The spans of a set and all that are above them. */
function withAbove(tree: TraceTree, spans: ReadonlySet<number>): ReadonlySet<number> {
  const shown = new Set<number>();
  for (const span of spans) {
    for (let at = span; at !== NONE && !shown.has(at); at = tree.parent[at] ?? NONE) shown.add(at);
  }
  return shown;
}

/** Whether two spans are leaves of one parent with the same name and type. */
function areAlike(tree: TraceTree, one: number, other: number): boolean {
  if (tree.parent[one] !== tree.parent[other] || (tree.below[one] ?? 0) > 0 || (tree.below[other] ?? 0) > 0) return false;
  const [head, next] = [tree.spans[one], tree.spans[other]];
  return head?.name === next?.name && head?.type === next?.type;
}

/** Returns the leaves that are alike from a place of the tree's order on, if they are many. */
function runAt(tree: TraceTree, at: number): ArrayLike<number> & Iterable<number> {
  const first = tree.order[at] ?? 0;
  let end = at;
  if ((tree.below[first] ?? 0) === 0) while (end < tree.order.length && areAlike(tree, first, tree.order[end] ?? 0)) end += 1;
  return end - at >= GROUP_MIN ? tree.order.subarray(at, end) : [];
}

/** A line of some spans, the first of which stands for all. */
function lineOf(tree: TraceTree, span: number, others: readonly number[], isFolded: boolean): Line {
  const begin = tree.begin[span] ?? 0;
  let end = tree.end[span] ?? 0;
  let [shortest, longest] = [end - begin, end - begin];
  let hasError = tree.spans[span]?.hasError === true;
  for (const other of others) {
    const length = (tree.end[other] ?? 0) - (tree.begin[other] ?? 0);
    end = Math.max(end, tree.end[other] ?? 0);
    shortest = Math.min(shortest, length);
    longest = Math.max(longest, length);
    hasError ||= tree.spans[other]?.hasError === true;
  }
  const hasBelow = (tree.below[span] ?? 0) > 0 || others.length > 0;
  return { span, others, depth: tree.depth[span] ?? 0, begin, end, shortest, longest, hasError, hasBelow, isFolded };
}

/** Returns the lines that are shown, from top to bottom. */
export function linesOf(tree: TraceTree, folding: Folding): readonly Line[] {
  const shown = folding.only === null ? null : withAbove(tree, folding.only);
  const lines: Line[] = [];
  const add = (span: number, others: readonly number[], isFolded: boolean): void => {
    lines.push(lineOf(tree, span, others, isFolded));
  };
  for (let at = 0; at < tree.order.length; at += 1) {
    const span = tree.order[at] ?? 0;
    const below = tree.below[span] ?? 0;
    if (shown !== null) {
      if (shown.has(span)) add(span, [], false);
      else at += below;
      continue;
    }
    const run = runAt(tree, at);
    if (run.length > 0) {
      if (folding.spread.has(span)) for (const one of run) add(one, [], false);
      else add(span, [...run].slice(1), true);
      at += run.length - 1;
      continue;
    }
    const isFolded = below > 0 && folding.folded.has(span);
    add(span, [], isFolded);
    if (isFolded) at += below;
  }
  return lines;
}

/** Returns the spans to fold so that a level and those above it are unfolded. The root has level 0. */
export function foldedBelow(tree: TraceTree, level: number): ReadonlySet<number> {
  const folded = new Set<number>();
  tree.depth.forEach((depth, span) => {
    if (depth >= level && (tree.below[span] ?? 0) > 0) folded.add(span);
  });
  return folded;
}

/** The first span of the group that a span is in, or `NONE`. */
function groupOf(tree: TraceTree, span: number): number {
  if ((tree.below[span] ?? 0) > 0) return NONE;
  let from = tree.place[span] ?? 0;
  while (from > 0 && areAlike(tree, span, tree.order[from - 1] ?? 0)) from -= 1;
  return runAt(tree, from).length > 0 ? (tree.order[from] ?? NONE) : NONE;
}

/** Returns what stays folded so that a span is shown. */
export function unfoldedTo(tree: TraceTree, folding: Folding, span: number): Folding {
  const folded = new Set(folding.folded);
  for (let at = tree.parent[span] ?? NONE; at !== NONE; at = tree.parent[at] ?? NONE) folded.delete(at);
  const group = groupOf(tree, span);
  const isHidden = group !== NONE && group !== span && !folding.spread.has(group);
  if (folded.size === folding.folded.size && !isHidden) return folding;
  return { ...folding, folded, spread: isHidden ? new Set([...folding.spread, group]) : folding.spread };
}

/** Returns the next of some spans after one, in the tree's order; from the other end if there is none. */
export function nextOf(tree: TraceTree, spans: readonly number[], from: number, by: 1 | -1): number | null {
  if (spans.length === 0) return null;
  const places = spans.map((span) => tree.place[span] ?? 0).sort((one, other) => one - other);
  const here = from === NONE ? -1 : (tree.place[from] ?? -1);
  const found = by === 1 ? places.find((place) => place > here) : places.findLast((place) => place < here);
  const place = found ?? (by === 1 ? places[0] : places[places.length - 1]) ?? 0;
  return tree.order[place] ?? null;
}
