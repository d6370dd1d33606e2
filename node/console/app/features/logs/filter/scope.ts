// What filter, facets and histogram are about: the rows of an object, within a range, that fulfil an expression.
import {
  compared,
  ident,
  literal,
  sourceOf,
  written,
  type Expression,
  type Shape,
} from "../../../api/query";
import type { RowShape } from "../../../btql";
import type { Bounds } from "../../../lib/range";
import type { SpanSource } from "../../../lib/trace";

export interface Scope {
  readonly organization: string;
  readonly source: SpanSource;
  /** What a row of the list is, and so what is counted. */
  readonly shape: RowShape;
  /** The bounds of the range, resolved once for the whole screen. */
  readonly bounds: Bounds;
  /** The expression that rows fulfil; empty for all. */
  readonly filter: string;
  /** The transaction as of which is read; absent or empty for the newest. */
  readonly version?: string;
}

/** The conditions of the range and the filter. */
export function conditionsOf({ bounds, filter }: Pick<Scope, "bounds" | "filter">): readonly Expression[] {
  const created = ident("created");
  return [
    ...(bounds.from === null ? [] : [compared("ge", created, literal(bounds.from))]),
    ...(bounds.to === null ? [] : [compared("lt", created, literal(bounds.to))]),
    ...(filter.trim() === "" ? [] : [written(filter)]),
  ];
}

/**
 * The shape in which rows are counted. Among traces, all spans of the traces that the filter finds count, whichever span
 * it was that fulfilled it. Without a filter these are all spans, which are read faster as such.
 */
const countedShape = ({ shape, filter }: Scope): Shape =>
  shape === "traces" && filter.trim() !== "" ? "traces" : "spans";

export const countedSource = (scope: Scope): Expression =>
  sourceOf(scope.source.kind, scope.source.id, countedShape(scope));

/** Everything of a scope that an answer depends on, for the key under which it is kept. */
export const scopeKey = ({ organization, source, shape, bounds, filter, version }: Scope): readonly unknown[] => [
  organization,
  source.kind,
  source.id,
  shape,
  bounds.from,
  bounds.to,
  filter,
  version ?? "",
];

/** How a row is called: `1 trace`, `2 traces`. */
export const rowWord = (shape: RowShape, count: number): string => {
  const one = shape === "traces" ? "trace" : "span";
  return count === 1 ? one : `${one}s`;
};
