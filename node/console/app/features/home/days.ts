// The last 24 hours of projects: traces and failing traces by the hour, how long traces take, and what they cost.
import { queryOptions } from "@tanstack/react-query";
import { textOrNull, type Fields } from "../../api/narrow";
import { called, compared, ident, item, literal, runQuery, type Expression } from "../../api/query";
import type { Project } from "../../api/schema";

const HOUR_MS = 3_600_000;
export const HOURS = 24;

export interface Day {
  /** The traces of each hour, the oldest first. */
  readonly traces: readonly number[];
  readonly failed: readonly number[];
  /** The duration in milliseconds that 95 % of the traces stay below; null if no trace has ended. */
  readonly p95: number | null;
  readonly cost: number | null;
}

export const numberOf = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);

/** The start of the first of the 24 hours that end with the present one. */
export const firstHour = (present: number): number => (Math.floor(present / HOUR_MS) - HOURS + 1) * HOUR_MS;

/** Puts hours and durations together, by the ids of projects. */
export function daysOf(hours: readonly Fields[], durations: readonly Fields[], first: number): ReadonlyMap<string, Day> {
  const p95 = new Map(durations.map((row) => [textOrNull(row, "p") ?? "", numberOf(row["p95"])]));
  const days = new Map<string, { traces: number[]; failed: number[]; cost: number | null }>();
  for (const row of hours) {
    const id = textOrNull(row, "p") ?? "";
    const place = Math.round((Date.parse(textOrNull(row, "t") ?? "") - first) / HOUR_MS);
    const day = days.get(id) ?? { traces: Array(HOURS).fill(0), failed: Array(HOURS).fill(0), cost: null };
    days.set(id, day);
    if (!(place >= 0 && place < HOURS)) continue;
    day.traces[place] = numberOf(row["n"]) ?? 0;
    day.failed[place] = numberOf(row["e"]) ?? 0;
    const cost = numberOf(row["c"]);
    if (cost !== null) day.cost = (day.cost ?? 0) + cost;
  }
  return new Map([...days].map(([id, day]) => {
    const seconds = p95.get(id) ?? null;
    return [id, { ...day, p95: seconds === null ? null : seconds * 1000 }];
  }));
}

export const logsOf = (projects: readonly Project[]): Expression => ({
  op: "function",
  name: ident("project_logs"),
  args: projects.map(({ id }) => literal(id)),
});

export const createdFrom = (moment: number): Expression => compared("ge", ident("created"), literal(new Date(moment).toISOString()));

const root = ident("root_span_id");

/** The traces of a group, and those that fail. */
export const tracesItems = [
  item("n", called("count_distinct", root)),
  item("e", called("count_distinct", { op: "if", conds: [{ cond: { op: "isnotnull", expr: ident("error") }, then: root }], else: literal(null) })),
];

/** Reads the last 24 hours of those projects that had rows in them. */
export const daysQuery = (organization: string, projects: readonly Project[]) => {
  const busy = projects.filter(({ rows }) => rows > 0);
  return queryOptions({
    queryKey: ["home days", organization, busy.map(({ id }) => id)],
    enabled: busy.length > 0,
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const first = firstHour(Date.now());
      const project = item("p", ident("project_id"));
      const from = logsOf(busy);
      const [hours, durations] = await Promise.all([
        runQuery(
          organization,
          {
            dimensions: [project, item("t", called("date_trunc", literal("hour"), ident("created")))],
            measures: [...tracesItems, item("c", called("sum", called("estimated_cost")))],
            from,
            filter: [createdFrom(first)],
          },
          { signal },
        ),
        runQuery(
          organization,
          {
            dimensions: [project],
            measures: [item("p95", called("percentile", ident("metrics", "duration"), literal(0.95)))],
            from,
            filter: [ident("is_root"), createdFrom(first)],
          },
          { signal },
        ),
      ]);
      return daysOf(hours.rows, durations.rows, first);
    },
  });
};
