// The requests of the filter: how a text is read, which fields there are, and how often a field has which value.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call } from "../../../api/client";
import { isRecord, record, text, type Fields } from "../../../api/narrow";
import { cache } from "../../../api/queries";
import {
  called,
  ident,
  item,
  literal,
  runQuery,
  written,
  type Expression,
  type QueryObject,
} from "../../../api/query";
import {
  called as calledText,
  isScalar,
  isTree,
  literal as literalText,
  path as pathText,
  patternWithin,
  type Chip,
  type KnownField,
  type KnownValue,
  textOfChips,
  treeOfChips,
  type Step,
  type Tree,
} from "../../../btql";
import { knownFields } from "./fields";
import { conditionsOf, countedSource, scopeKey, type Scope } from "./scope";

/** What is wrong with a text, and the byte at which it is. */
export interface Fault {
  readonly message: string;
  readonly column: number | null;
  readonly offset: number | null;
}

/** A text that the server has read. */
export type Parsed =
  | { readonly kind: "read"; readonly text: string; readonly tree: Tree }
  | { readonly kind: "fault"; readonly fault: Fault };

const numberOrNull = (value: unknown): number | null => (typeof value === "number" ? value : null);

function readParsed(value: unknown): Parsed {
  const answer = record(value, "parsed expression");
  const error = answer["error"];
  if (isRecord(error)) {
    const message = text(error, "message").replace(/^line \d+, column \d+: /, "");
    return { kind: "fault", fault: { message, column: numberOrNull(error["column"]), offset: numberOrNull(error["offset"]) } };
  }
  const tree = answer["tree"];
  return { kind: "read", text: text(answer, "expression"), tree: isTree(tree) ? tree : { op: "unknown" } };
}

const parseKey = (expression: string) => ["parsed expression", expression] as const;

export const parseQuery = (organization: string, expression: string) =>
  queryOptions({
    queryKey: parseKey(expression),
    queryFn: async ({ signal }) =>
      readParsed(await call("POST", "/console/parse", { organization, body: { expression }, signal })),
    staleTime: Infinity,
    placeholderData: keepPreviousData,
    enabled: expression.trim() !== "",
  });

export const parse = async (organization: string, expression: string): Promise<Parsed> =>
  cache.fetchQuery(parseQuery(organization, expression));

/** Keeps what is known of the text of some chips, so that nobody has to ask for it. Returns the text. */
export function rememberChips(chips: readonly Chip[]): string {
  const expression = textOfChips(chips);
  const tree = treeOfChips(chips);
  const known: Parsed = { kind: "read", text: expression, tree: tree ?? { op: "and" } };
  if (tree !== null) cache.setQueryData(parseKey(expression), known);
  return expression;
}

const INFERRED = ["metadata", "tags", "span_attributes", "scores", "metrics"] as const;
const BUDGET = 2000;

/** The fields of the rows within the range, whatever the filter. */
export const fieldsQuery = (scope: Scope) =>
  queryOptions({
    queryKey: ["log fields", ...scopeKey({ ...scope, filter: "", shape: "spans" })],
    queryFn: async ({ signal }): Promise<readonly KnownField[]> => {
      const query: QueryObject = {
        infer: INFERRED.map((column) => ident(column)),
        from: countedSource({ ...scope, filter: "" }),
        filter: conditionsOf({ ...scope, filter: "" }),
        inference_budget: BUDGET,
      };
      const page = await runQuery(scope.organization, query, { signal, version: scope.version ?? "" });
      return knownFields(page.rows);
    },
    staleTime: 60_000,
    placeholderData: keepPreviousData,
  });

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
      return valuesOf((await runQuery(scope.organization, query, { signal, version: scope.version ?? "" })).rows);
    },
    placeholderData: keepPreviousData,
  });
