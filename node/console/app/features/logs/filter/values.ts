// The request of a field's values. It stands alone, because it is needed only once a field is opened.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { Fields } from "../../../api/narrow";
import { runCount } from "../../../api/counting";
import { called, ident, item, literal, written, type Expression, type QueryObject } from "../../../api/query";
import {
  called as calledText,
  isScalar,
  literal as literalText,
  path as pathText,
  patternWithin,
  type KnownField,
  type KnownValue,
  type Step,
} from "../../../btql";
import { conditionsOf, countedSource, scopeKey, type Scope } from "./scope";

/** How many values of a field are listed. */
export const VALUES = 50;

export interface FieldValues {
  readonly values: readonly KnownValue[];
  /** Whether there are more values than those listed. */
  readonly hasMore: boolean;
}

/** What is counted: traces, or the spans themselves. */
const countOf = ({ shape }: Scope): Expression =>
  shape === "traces" ? called("count_distinct", ident("root_span_id")) : called("count", literal(1));

function valuesOf(rows: readonly Fields[]): FieldValues {
  const values = rows.flatMap((row) => {
    const [value, count] = [row["value"], row["n"]];
    return isScalar(value) && typeof count === "number" ? [{ value, count }] : [];
  });
  return { values: values.slice(0, VALUES), hasMore: rows.length > VALUES };
}

/** The condition that some span of the trace, or the span, has a text somewhere in a field. */
const hasText = (path: readonly Step[], contained: string): Expression =>
  written(calledText("any_span", `${pathText(path)} ILIKE ${literalText(patternWithin(contained))}`));

function valuesQueryOf(scope: Scope, field: Pick<KnownField, "path" | "type">, contained: string): QueryObject {
  const isList = field.type === "array";
  const at = ident(...field.path);
  return {
    ...(isList ? { unpivot: [{ expr: at, alias: "element" }] } : {}),
    dimensions: [item("value", isList ? ident("element") : at)],
    measures: [item("n", countOf(scope))],
    from: countedSource(scope),
    filter: [...conditionsOf(scope), ...(contained === "" ? [] : [hasText(field.path, contained)])],
    sort: [{ expr: ident("n"), dir: "desc" }],
    limit: VALUES + 2,
  };
}

/** The values of a field with how many rows of the scope have each, the most frequent first. */
export const valuesQuery = (scope: Scope, field: Pick<KnownField, "path" | "type">, contained = "") =>
  queryOptions({
    queryKey: ["log values", field.path, field.type, contained, ...scopeKey(scope)],
    queryFn: async ({ signal }): Promise<FieldValues> => {
      const query = valuesQueryOf(scope, field, contained);
      return valuesOf((await runCount(scope.organization, query, { signal, version: scope.version ?? "" })).rows);
    },
    placeholderData: keepPreviousData,
  });
