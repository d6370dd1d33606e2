// Queries to start from. They are made for the project whose logs are busiest, so that each of them finds rows.
import type { Project } from "../../api/schema";
import { EMPTY_PART, type QueryPart } from "./tabs";

export interface Example {
  readonly id: string;
  readonly title: string;
  /** What it shows, in a sentence. */
  readonly about: string;
  readonly part: QueryPart;
}

const DAY_MS = 86_400_000;

/** The project with the most rows of the last day, else the one with the newest row; null if no project has rows. */
export function busiest(projects: readonly Project[]): Project | null {
  const withRows = projects.filter((project) => project.newest !== null);
  const [first] = withRows.toSorted((a, b) => b.rows - a.rows || Date.parse(b.newest ?? "") - Date.parse(a.newest ?? ""));
  return first ?? null;
}

/** The day a week before the newest row. */
function weekBefore(newest: string): string {
  const moment = new Date(Date.parse(newest) - 6 * DAY_MS);
  return moment.toISOString().slice(0, 10);
}

const partOf = (lines: readonly string[], more: Partial<QueryPart> = {}): QueryPart => ({
  ...EMPTY_PART,
  text: lines.join("\n"),
  ...more,
});

/** What an example reads, as texts of the query language. */
interface Reads {
  readonly logs: string;
  /** The first day that is read, in quotes. */
  readonly since: string;
}

const traces = ({ logs, since }: Reads): Example => ({
  id: "newest",
  title: "Newest traces",
  about: "A row for each trace, with its duration, tokens and cost.",
  part: partOf([
    "select: created, root_span_id, span_type_info.name as name, input, metrics.duration as seconds,",
    "  metrics.total_tokens as tokens, metrics.estimated_cost as usd, scores",
    `from: ${logs} summary`,
    `filter: created >= ${since}`,
    "limit: 100",
  ]),
});

const hours = ({ logs, since }: Reads): Example => ({
  id: "hours",
  title: "Spans and errors by hour",
  about: "A chart of how much was recorded, and how much failed.",
  part: partOf(
    [
      "dimensions: date_trunc('hour', created) as hour",
      "measures: count(1) as spans, count(error) as errors",
      `from: ${logs}`,
      `filter: created >= ${since}`,
      "sort: hour",
    ],
    { tab: "chart" },
  ),
});

const models = ({ logs, since }: Reads): Example => ({
  id: "models",
  title: "Tokens and time by model",
  about: "What each model was asked, in SQL.",
  part: partOf([
    "SELECT metadata.model AS model, count(1) AS calls, sum(metrics.total_tokens) AS tokens,",
    "  percentile(metrics.duration, 0.95) AS p95_seconds",
    `FROM ${logs}`,
    `WHERE span_attributes.type = 'llm' AND created >= ${since}`,
    "GROUP BY model",
    "ORDER BY calls DESC",
  ]),
});

const scores = ({ logs, since }: Reads): Example => ({
  id: "scores",
  title: "Mean of each score",
  about: "A row for each score, with how many spans have it.",
  part: partOf([
    "SELECT score, avg(value) AS mean, count(1) AS spans",
    `FROM ${logs}`,
    "UNPIVOT (value FOR score IN (scores))",
    `WHERE created >= ${since}`,
    "GROUP BY score",
    "ORDER BY score",
  ]),
});

const slowest = ({ logs, since }: Reads): Example => ({
  id: "slowest",
  title: "Slowest spans",
  about: "Spans by duration, the longest first, with their errors.",
  part: partOf([
    "select: created, span_attributes.name as name, span_attributes.type as type,",
    "  metrics.duration as seconds, error, id",
    `from: ${logs}`,
    `filter: created >= ${since} and metrics.duration is not null`,
    "sort: seconds desc",
    "limit: 50",
  ]),
});

export function examplesOf(project: Project): readonly Example[] {
  const reads = { logs: `project_logs('${project.id}')`, since: `'${weekBefore(project.newest ?? "")}'` };
  return [traces, hours, models, scores, slowest].map((make) => make(reads));
}
