// What an organization stores and uses: its rows and bytes against quotas, its rates, and what model calls took.
import { call } from "./client";
import { isRecord, list, record, text, textOrNull, type Fields } from "./narrow";
import { called, compared, ident, item, literal, runQuery, type Expression, type QueryObject } from "./query";

export interface StoredProject {
  readonly id: string;
  readonly name: string;
  readonly rows: number;
  readonly bytes: number;
}

export interface Rate {
  /** The endpoint that it is about, such as `/btql`. */
  readonly endpoint: string;
  readonly methods: readonly string[];
  /** Whose calls count together: `organization`, `project`, `organization+project`, `credential`. */
  readonly per: string;
  readonly requests: number;
  readonly seconds: number;
  /** How many calls may come at once. */
  readonly burst: number;
  /** How many would be admitted now; null if that is not known. */
  readonly left: number | null;
}

export interface Usage {
  /** Whether all of the cluster answered; else the sums are too small. */
  readonly isComplete: boolean;
  readonly rows: number;
  readonly bytes: number;
  readonly quota: { readonly rows: number | null; readonly bytes: number | null };
  readonly projects: readonly StoredProject[];
  readonly rates: readonly Rate[];
}

export const numberOrNull = (fields: Fields, key: string): number | null => {
  const value = fields[key];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
};

const numberOf = (fields: Fields, key: string): number => numberOrNull(fields, key) ?? 0;

function readStored(value: unknown): StoredProject {
  const project = record(value, "project");
  return {
    id: text(project, "id"),
    name: textOrNull(project, "name") ?? text(project, "id"),
    rows: numberOf(project, "rows"),
    bytes: numberOf(project, "bytes"),
  };
}

function readRate(value: unknown): Rate {
  const rate = record(value, "rate");
  const methods = rate["methods"];
  return {
    endpoint: text(rate, "endpoint"),
    methods: Array.isArray(methods) ? methods.filter((method) => typeof method === "string") : [],
    per: textOrNull(rate, "per") ?? "",
    requests: numberOf(rate, "requests"),
    seconds: numberOf(rate, "seconds"),
    burst: numberOf(rate, "burst"),
    left: numberOrNull(rate, "left"),
  };
}

export function readUsage(value: unknown): Usage {
  const usage = record(value, "usage");
  const quota = isRecord(usage["quota"]) ? usage["quota"] : {};
  return {
    isComplete: usage["complete"] !== false,
    rows: numberOf(usage, "rows"),
    bytes: numberOf(usage, "bytes"),
    quota: { rows: numberOrNull(quota, "rows"), bytes: numberOrNull(quota, "bytes") },
    projects: list(usage, "projects").map(readStored),
    rates: list(usage, "rates").map(readRate),
  };
}

export const askUsage = async (organization: string, signal: AbortSignal): Promise<Usage> =>
  readUsage(await call("GET", "/console/usage", { organization, signal }));

/** What the calls of a model took within a bucket of time. */
export interface Spent {
  /** The start of the bucket, in milliseconds since 1970. */
  readonly at: number;
  /** Null for calls that name no model. */
  readonly model: string | null;
  readonly calls: number;
  readonly prompt: number;
  readonly completion: number;
  /** In dollars; null if no call has a price. */
  readonly cost: number | null;
}

/** The logs of some projects as a source of queries. */
export const logsOf = (projects: readonly string[]): Expression => ({
  op: "function",
  name: ident("project_logs"),
  args: projects.map((id) => literal(id)),
});

/** The condition that a row was created within bounds, of which each may be absent. */
export const within = (from: string | null, to: string | null): readonly Expression[] => [
  ...(from === null ? [] : [compared("ge", ident("created"), literal(from))]),
  ...(to === null ? [] : [compared("lt", ident("created"), literal(to))]),
];

/** How many rows a question about spending answers with at the most. */
export const MOST_SPENT = 10_000;

function readSpent(row: Fields): Spent {
  return {
    at: Date.parse(text(row, "t")),
    model: textOrNull(row, "model"),
    calls: numberOf(row, "calls"),
    prompt: numberOf(row, "prompt"),
    completion: numberOf(row, "completion"),
    cost: numberOrNull(row, "cost"),
  };
}

export interface SpendingQuestion {
  readonly projects: readonly string[];
  readonly from: string | null;
  readonly to: string | null;
  /** The width of the buckets as `date_trunc` takes it. */
  readonly unit: string;
  readonly tzOffset: number;
}

/** Asks what model calls took, by bucket of time and model. */
export async function askSpending(organization: string, asked: SpendingQuestion, signal: AbortSignal): Promise<readonly Spent[]> {
  if (asked.projects.length === 0) return [];
  const sum = (name: string): Expression => called("sum", ident("metrics", name));
  const query: QueryObject = {
    dimensions: [item("t", called("date_trunc", literal(asked.unit), ident("created"))), item("model", ident("metadata", "model"))],
    measures: [
      item("calls", called("count", literal(1))),
      item("prompt", sum("prompt_tokens")),
      item("completion", sum("completion_tokens")),
      item("cost", called("sum", called("estimated_cost"))),
    ],
    from: logsOf(asked.projects),
    filter: [compared("eq", ident("span_attributes", "type"), literal("llm")), ...within(asked.from, asked.to)],
    sort: [{ expr: ident("t"), dir: "desc" }],
    limit: MOST_SPENT,
  };
  return (await runQuery(organization, query, { signal, tzOffset: asked.tzOffset })).rows.map(readSpent);
}

/** What rows there are of some objects from before a moment. */
export interface OldRows {
  readonly count: number;
  /** When the oldest of them was created; null without rows. */
  readonly oldest: string | null;
}

export type RetainedKind = "project_logs" | "experiment" | "dataset";

const AT_ONCE = 200;

/** Counts the rows of objects from before a moment, as retention finds them. */
export async function countOld(
  organization: string,
  kind: RetainedKind,
  ids: readonly string[],
  before: string,
  signal: AbortSignal,
): Promise<OldRows> {
  let found: OldRows = { count: 0, oldest: null };
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const query: QueryObject = {
      measures: [item("n", called("count", literal(1))), item("oldest", called("min", ident("created")))],
      from: { ...logsOf(ids.slice(at, at + AT_ONCE)), name: ident(kind) },
      filter: within(null, before),
    };
    const [row = {}] = (await runQuery(organization, query, { signal })).rows;
    const oldest = [found.oldest, textOrNull(row, "oldest")].filter((one) => one !== null).sort()[0] ?? null;
    found = { count: found.count + numberOf(row, "n"), oldest };
  }
  return found;
}
