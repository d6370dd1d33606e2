// The requests of the filter bar: how a text is read, and which fields there are.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call } from "../../../api/client";
import { isRecord, record, text } from "../../../api/narrow";
import { cache } from "../../../api/queries";
import { ident, runQuery, type QueryObject } from "../../../api/query";
import { isTree, textOfChips, treeOfChips, type Chip, type KnownField, type Tree } from "../../../btql";
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
