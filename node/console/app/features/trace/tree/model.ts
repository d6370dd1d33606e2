// The tree of a trace as typed arrays: who is below whom, in what order, how deep, and when. Nothing here is recursive,
// and nothing takes more than the logarithm of the number of spans for one span.
import type { SpanHead } from "../../../api/spans";

/** What the line of spans without a received parent stands for. */
export const NONE = -1;

export interface TraceTree {
  readonly spans: readonly SpanHead[];
  /** The index of the parent of each span, or `NONE`. */
  readonly parent: Int32Array;
  /** The spans from top to bottom. */
  readonly order: Int32Array;
  /** Where in `order` each span is. */
  readonly place: Int32Array;
  readonly depth: Int32Array;
  /** The number of spans below each span. */
  readonly below: Int32Array;
  /** Which of its siblings each span is, from 1, and how many they are. */
  readonly sibling: Int32Array;
  readonly siblings: Int32Array;
  /** Begin and end of each span in seconds; an open end is the end of the trace so far. */
  readonly begin: Float64Array;
  readonly end: Float64Array;
  /** Whether a span has not ended. */
  readonly isOpen: Uint8Array;
  /** Spans whose parent was not received. */
  readonly orphans: ReadonlySet<number>;
  readonly first: number;
  readonly last: number;
  /** The index of the root, or `NONE`. */
  readonly root: number;
  readonly errors: number;
  readonly indexOf: ReadonlyMap<string, number>;
}

const seconds = (text: string): number | null => {
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? null : moment / 1000;
};

/** Follows parents upwards and cuts one link of every circle, so that each span is below exactly one top. */
function withoutCircles(parent: Int32Array): void {
  const seen = new Int32Array(parent.length);
  for (let start = 0; start < parent.length; start += 1) {
    let at = start;
    while (at !== NONE && seen[at] === 0) {
      seen[at] = start + 1;
      at = parent[at] ?? NONE;
    }
    if (at !== NONE && seen[at] === start + 1) parent[at] = NONE;
  }
}

interface Times {
  readonly begin: Float64Array;
  readonly end: Float64Array;
  readonly isOpen: Uint8Array;
  readonly first: number;
  readonly last: number;
}

/** Whether a span is a review, which people write when the trace is long over: its time says nothing of the trace. */
const isAfterwards = ({ type, start }: SpanHead): boolean => type === "review" && start === null;

function timesOf(spans: readonly SpanHead[]): Times {
  const begin = new Float64Array(spans.length);
  const end = new Float64Array(spans.length);
  const isOpen = new Uint8Array(spans.length);
  let first = Infinity;
  let last = -Infinity;
  spans.forEach((span, index) => {
    const start = span.start ?? seconds(span.created) ?? span.end ?? 0;
    begin[index] = start;
    end[index] = span.end === null ? NaN : Math.max(span.end, start);
    isOpen[index] = span.end === null && span.start !== null ? 1 : 0;
    if (isAfterwards(span)) return;
    first = Math.min(first, start);
    last = Math.max(last, span.end ?? start);
  });
  if (last < first) first = last = begin[0] ?? 0;
  spans.forEach((span, index) => {
    if (isAfterwards(span)) begin[index] = last;
  });
  for (let index = 0; index < spans.length; index += 1) {
    if (!Number.isNaN(end[index])) continue;
    end[index] = isOpen[index] === 1 ? last : (begin[index] ?? 0);
  }
  return { begin, end, isOpen, first, last };
}

/** The children of all spans in one list: those of a span are from its offset to the next; the last has the tops. */
interface Children {
  readonly list: Int32Array;
  readonly offset: Int32Array;
}

/** The spans in the order of their begin. Most traces arrive in that order, and are not sorted then. */
function byBegin(begin: Float64Array): Int32Array {
  const indices = Int32Array.from(begin, (_, index) => index);
  const isSorted = begin.every((one, index) => index === 0 || one >= (begin[index - 1] ?? 0));
  if (isSorted) return indices;
  return indices.sort((one, other) => (begin[one] ?? 0) - (begin[other] ?? 0) || one - other);
}

/** Returns the children of each span, in the order of their begin. */
function childrenOf(parent: Int32Array, begin: Float64Array): Children {
  const count = parent.length;
  const offset = new Int32Array(count + 2);
  const slotOf = (index: number): number => {
    const above = parent[index] ?? NONE;
    return above === NONE ? count : above;
  };
  for (let index = 0; index < count; index += 1) offset[slotOf(index) + 1] = (offset[slotOf(index) + 1] ?? 0) + 1;
  for (let slot = 0; slot <= count; slot += 1) offset[slot + 1] = (offset[slot + 1] ?? 0) + (offset[slot] ?? 0);
  const next = offset.slice();
  const list = new Int32Array(count);
  for (const index of byBegin(begin)) {
    const slot = slotOf(index);
    const at = next[slot] ?? 0;
    list[at] = index;
    next[slot] = at + 1;
  }
  return { list, offset };
}

/** Returns the parents that were received, and the spans whose parent was not. */
function parentsOf(spans: readonly SpanHead[], indexOf: ReadonlyMap<string, number>) {
  const parent = new Int32Array(spans.length).fill(NONE);
  const orphans = new Set<number>();
  spans.forEach((span, index) => {
    const named = span.parents[0];
    const above = named === undefined ? undefined : indexOf.get(named);
    if (above !== undefined && above !== index) parent[index] = above;
    else if (named !== undefined && above === undefined) orphans.add(index);
  });
  withoutCircles(parent);
  return { parent, orphans };
}

/** Numbers the spans of each list of siblings. */
function numbered({ list, offset }: Children) {
  const sibling = new Int32Array(list.length);
  const siblings = new Int32Array(list.length);
  for (let slot = 0; slot <= list.length; slot += 1) {
    const [from, to] = [offset[slot] ?? 0, offset[slot + 1] ?? 0];
    for (let at = from; at < to; at += 1) {
      const index = list[at] ?? 0;
      sibling[index] = at - from + 1;
      siblings[index] = to - from;
    }
  }
  return { sibling, siblings };
}

/** Puts the root before other tops, and those whose parent is missing last. */
function rankTops(spans: readonly SpanHead[], { list, offset }: Children, orphans: ReadonlySet<number>): void {
  const rank = (index: number): number => (spans[index]?.isRoot === true ? 0 : orphans.has(index) ? 2 : 1);
  const tops = [...list.subarray(offset[list.length] ?? 0)].sort((one, other) => rank(one) - rank(other));
  list.set(tops, offset[list.length] ?? 0);
}

/** Puts the spans in order from top to bottom. */
function ordered(parent: Int32Array, { list, offset }: Children) {
  const order = new Int32Array(list.length);
  const place = new Int32Array(list.length);
  const depth = new Int32Array(list.length);
  const open: number[] = [];
  const push = (slot: number): void => {
    for (let at = (offset[slot + 1] ?? 0) - 1; at >= (offset[slot] ?? 0); at -= 1) open.push(list[at] ?? 0);
  };
  push(list.length);
  for (let at = 0; open.length > 0; at += 1) {
    const index = open.pop() ?? 0;
    order[at] = index;
    place[index] = at;
    const above = parent[index] ?? NONE;
    depth[index] = above === NONE ? 0 : (depth[above] ?? 0) + 1;
    push(index);
  }
  return { order, place, depth };
}

/** Returns each span once, where it came first and as it came last. */
function spansOf(rows: readonly SpanHead[]) {
  const spans: SpanHead[] = [];
  const indexOf = new Map<string, number>();
  for (const row of rows) {
    const known = indexOf.get(row.spanId);
    if (known === undefined) indexOf.set(row.spanId, spans.push(row) - 1);
    else spans[known] = row;
  }
  return { spans, indexOf };
}

/** Builds the tree of a trace. The last of several rows of one span counts. */
export function treeOf(rows: readonly SpanHead[]): TraceTree {
  const { spans, indexOf } = spansOf(rows);
  const { parent, orphans } = parentsOf(spans, indexOf);
  const times = timesOf(spans);
  const children = childrenOf(parent, times.begin);
  rankTops(spans, children, orphans);
  const { order, place, depth } = ordered(parent, children);
  const below = new Int32Array(spans.length);
  for (let at = spans.length - 1; at >= 0; at -= 1) {
    const index = order[at] ?? 0;
    const above = parent[index] ?? NONE;
    if (above !== NONE) below[above] = (below[above] ?? 0) + (below[index] ?? 0) + 1;
  }
  const root = spans.findIndex((span) => span.isRoot);
  const errors = spans.reduce((count, span) => count + (span.hasError ? 1 : 0), 0);
  const numbers = numbered(children);
  return { spans, parent, order, place, depth, below, ...numbers, ...times, orphans, root, errors, indexOf };
}

/** Returns the spans that the trace waited for, from the end backwards: the critical path. */
export function criticalPath(tree: TraceTree): ReadonlySet<number> {
  const path = new Set<number>();
  if (tree.root === NONE) return path;
  const children: number[][] = tree.spans.map(() => []);
  tree.parent.forEach((above, index) => {
    if (above !== NONE) children[above]?.push(index);
  });
  const open: (readonly [span: number, until: number])[] = [[tree.root, tree.end[tree.root] ?? 0]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [span, until] = next;
    path.add(span);
    // what ended last before the wait began is what was waited for
    const list = [...(children[span] ?? [])].sort((one, other) => (tree.end[other] ?? 0) - (tree.end[one] ?? 0));
    let at = until;
    for (const child of list) {
      const end = tree.end[child] ?? 0;
      if (end > at + 1e-9) continue;
      open.push([child, end]);
      at = tree.begin[child] ?? 0;
    }
  }
  return path;
}
