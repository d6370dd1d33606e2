// The requests of an explanation: for the selection and for the rest, how many rows, which values, and which numbers.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { Fields } from "../../../api/narrow";
import { called, ident, item, literal, runQuery, sourceOf, written, type Expression, type QueryObject } from "../../../api/query";
import type { Step } from "../../../btql";
import { conditionsOf, scopeKey, type Scope } from "../filter/scope";
import {
  foundOf,
  ranked,
  rankedNumbers,
  rankedValues,
  readRows,
  type ExplainedField,
  type Found,
  type NumbersFound,
  type Side,
} from "./ranking";
import { dividedBy, selectionKey, type Selection } from "./selection";

/** How many spans of each group are read for the values of their fields. */
const BUDGET = 3000;
/** How many fields of numbers are compared. */
const MOST_NUMBERS = 16;
const RANKS = 10;

export interface Explanation {
  readonly inside: Side;
  readonly outside: Side;
  readonly fields: readonly ExplainedField[];
  /** How many fields both groups have alike. */
  readonly alike: number;
}

interface Group {
  readonly scope: Scope;
  readonly condition: Expression;
  readonly selection: Selection;
  readonly signal: AbortSignal;
}

const numberOf = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0);

const run = async ({ scope, condition, signal }: Group, query: Omit<QueryObject, "from" | "filter">, isOfRows = false) => {
  const ofTraces = isOfRows ? "summary" : "traces";
  const from = sourceOf(scope.source.kind, scope.source.id, scope.shape === "traces" ? ofTraces : "spans");
  const filter = [...conditionsOf(scope), condition];
  return (await runQuery(scope.organization, { ...query, from, filter }, { signal, version: scope.version ?? "" })).rows;
};

async function counts(group: Group): Promise<Omit<Side, "read">> {
  const measures = [item("spans", called("count", literal(1))), item("traces", called("count_distinct", ident("root_span_id")))];
  const [row = {}] = await run(group, { measures });
  return { spans: numberOf(row["spans"]), traces: numberOf(row["traces"]) };
}

const infer = (group: Group): Promise<readonly Fields[]> => {
  const columns = ["metadata", "span_attributes", "metrics", "scores", ...(group.selection.kind === "errors" ? [] : ["error"])];
  return run(group, { infer: columns.map((column) => ident(column)), inference_budget: BUDGET });
};

const MOST_TAGS = 50;

/** How many rows have each tag, which an inference does not tell. All rows count, not only those of the sample. */
async function tags(group: Group): Promise<readonly Fields[]> {
  const count = group.scope.shape === "traces" ? called("count_distinct", ident("root_span_id")) : called("count", literal(1));
  return run(group, {
    unpivot: [{ expr: ident("tags"), alias: "tag" }],
    dimensions: [item("value", ident("tag"))],
    measures: [item("count", count)],
    sort: [{ expr: ident("count"), dir: "desc" }],
    limit: MOST_TAGS,
  });
}

interface Read {
  readonly side: Side;
  readonly found: ReadonlyMap<string, Found>;
  readonly numbers: readonly (readonly Step[])[];
  readonly tags: Found;
}

async function read(group: Group): Promise<Read> {
  const [sizes, inferred, tagRows] = await Promise.all([counts(group), infer(group), tags(group)]);
  const values = tagRows.flatMap(({ value, count }) => (typeof value === "string" ? [{ value, count: numberOf(count) }] : []));
  const isNumber = ({ name, type }: Fields): boolean => type === "number" && Array.isArray(name);
  return {
    side: { ...sizes, read: readRows(inferred) },
    found: foundOf(inferred),
    numbers: inferred.filter(isNumber).map(({ name }) => (Array.isArray(name) ? name.filter((step) => typeof step === "string") : [])),
    tags: { path: ["tags"], count: 0, values, isCut: values.length >= MOST_TAGS },
  };
}

/** Metrics that every row has, or that follow from others. */
const DERIVED: readonly (readonly Step[])[] = [
  ["metrics", "duration"],
  ["metrics", "total_tokens"],
];

/** Metrics that are moments, or the same as others. */
const DULL: ReadonlySet<string> = new Set(["start", "end", "tokens", "caller_lineno"]);

const FEW_VALUES = 8;

/** Whether a field of numbers is compared by its distribution, and not value by value. */
function isMeasured(path: readonly Step[], ...found: readonly (Found | undefined)[]): boolean {
  const [column, name] = path;
  if (column === "metrics") return !DULL.has(String(name));
  return column === "scores" || found.some((one) => (one?.values.length ?? 0) > FEW_VALUES);
}

const aliasOf = (field: number, rank: number): string => `f${field}_${rank}`;

async function numbers(group: Group, paths: readonly (readonly Step[])[]): Promise<readonly NumbersFound[]> {
  if (paths.length === 0) return [];
  const measures = paths.flatMap((path, index) => {
    const number = called("to_number", ident(...path));
    const ranks = Array.from({ length: RANKS + 1 }, (_, rank) =>
      item(aliasOf(index, rank), called("percentile", number, literal(rank / RANKS))),
    );
    return [item(`n${index}`, called("count", number)), ...ranks];
  });
  const [row = {}] = await run(group, { measures }, true);
  return paths.flatMap((path, index) => {
    const ranks = Array.from({ length: RANKS + 1 }, (_, rank) => row[aliasOf(index, rank)]);
    const quantiles = ranks.filter((rank) => typeof rank === "number");
    return quantiles.length === ranks.length ? [{ path, count: numberOf(row[`n${index}`]), quantiles }] : [];
  });
}

function uniquePaths(paths: readonly (readonly Step[])[]): readonly (readonly Step[])[] {
  return [...new Map(paths.map((path) => [JSON.stringify(path), path])).values()];
}

const ofAllRows = (side: Side): Side => ({ ...side, read: side.spans });

async function explain(scope: Scope, selection: Selection, signal: AbortSignal): Promise<Explanation> {
  const divided = dividedBy(selection, scope.shape);
  const groupOf = (condition: string): Group => ({ scope, selection, signal, condition: written(condition) });
  const [one, other] = [groupOf(divided.inside), groupOf(divided.outside)];
  const [inside, outside] = await Promise.all([read(one), read(other)]);
  const measured = uniquePaths([...DERIVED, ...inside.numbers, ...outside.numbers])
    .filter((path) => isMeasured(path, inside.found.get(JSON.stringify(path)), outside.found.get(JSON.stringify(path))))
    .slice(0, MOST_NUMBERS);
  const [own, others] = await Promise.all([numbers(one, measured), numbers(other, measured)]);
  const skipped = new Set([...measured, ...[...DULL].map((name) => ["metrics", name])].map((path) => JSON.stringify(path)));
  const valued = (found: ReadonlyMap<string, Found>): ReadonlyMap<string, Found> => new Map([...found].filter(([key]) => !skipped.has(key)));
  const isOfTraces = scope.shape === "traces";
  const values = rankedValues(valued(inside.found), valued(outside.found), { inside: inside.side, outside: outside.side, isOfTraces });
  const tagged = rankedValues(new Map([["tags", inside.tags]]), new Map([["tags", outside.tags]]), {
    inside: ofAllRows(inside.side),
    outside: ofAllRows(outside.side),
    isOfTraces,
  });
  const fields = ranked([...values, ...tagged], rankedNumbers(own, others));
  const all = new Set([...valued(inside.found).keys(), ...valued(outside.found).keys()]).size + own.length + 1;
  return { inside: inside.side, outside: outside.side, fields, alike: Math.max(0, all - fields.length) };
}

export const explainQuery = (scope: Scope, selection: Selection) =>
  queryOptions({
    queryKey: ["log explanation", selectionKey(selection), ...scopeKey(scope)],
    queryFn: ({ signal }) => explain(scope, selection, signal),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
