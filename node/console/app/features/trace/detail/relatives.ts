// Finds spans that belong to a span's detail: the call before it, its reviews, and those that it can be compared with.
import type { SpanHead } from "../../../api/spans";
import type { TraceTree } from "../tree/model";

/** The most spans that are offered for a comparison. */
const OFFERED = 50;

const isAlike = (one: SpanHead, other: SpanHead): boolean =>
  one.id !== other.id && one.name === other.name && one.type === other.type;

/** The index of the span that fulfils a condition and began last before another one; -1 if there is none. */
function lastBefore(tree: TraceTree, at: number, isWanted: (span: SpanHead) => boolean): number {
  const limit = tree.begin[at] ?? 0;
  let found = -1;
  tree.spans.forEach((span, index) => {
    const begin = tree.begin[index] ?? 0;
    if (index === at || begin > limit || !isWanted(span)) return;
    if (found < 0 || begin > (tree.begin[found] ?? 0)) found = index;
  });
  return found;
}

/** The call of a model before a call of a model, whose conversation it may go on with. */
export function callBefore(tree: TraceTree | undefined, head: SpanHead): SpanHead | null {
  const at = tree?.indexOf.get(head.spanId);
  if (tree === undefined || at === undefined || head.type !== "llm") return null;
  return tree.spans[lastBefore(tree, at, (span) => span.type === "llm")] ?? null;
}

/** The spans that a span can be compared with, the one before it of the same name first. */
export function comparable(tree: TraceTree | undefined, head: SpanHead): readonly SpanHead[] {
  const at = tree?.indexOf.get(head.spanId);
  if (tree === undefined || at === undefined) return [];
  const before = tree.spans[lastBefore(tree, at, (span) => isAlike(span, head))];
  const parent = tree.spans[tree.parent[at] ?? -1];
  const first = [before, parent].filter((span) => span !== undefined);
  const alike = tree.spans.filter((span) => isAlike(span, head));
  const others = tree.spans.filter((span) => span.id !== head.id && span.type === head.type);
  return [...new Set([...first, ...alike.slice(0, OFFERED), ...others.slice(0, OFFERED)])].slice(0, OFFERED);
}

/** The reviews of a span: each is a span below it with the scores of one reviewer. */
export const reviewsOf = (tree: TraceTree | undefined, head: SpanHead): readonly SpanHead[] =>
  tree === undefined ? [] : tree.spans.filter((span) => span.type === "review" && span.parents.includes(head.spanId));
