// Which experiments the list shows, in which order, and what of them.
import type { Experiment, ExperimentFigures, ScoreFigure } from "../../api/experiments";
import { momentOf } from "../../lib/version";

export interface ListedExperiment {
  readonly experiment: Experiment;
  /** What is counted of its rows; null while it is not known. */
  readonly figures: ExperimentFigures | null;
  /** The figures of the baseline, unless it is this one. */
  readonly base: ExperimentFigures | null;
  readonly isBaseline: boolean;
  readonly isRunning: boolean;
  readonly by: string | null;
  readonly dataset: string | null;
  /** How many rows its dataset has; null if that is not known. */
  readonly expected: number | null;
}

export interface Sources {
  readonly experiments: readonly Experiment[];
  readonly figures: ReadonlyMap<string, ExperimentFigures>;
  readonly baseline: string | null;
  readonly people: ReadonlyMap<string, string>;
  /** Names by ids; undefined while they are read. */
  readonly datasets: ReadonlyMap<string, string> | undefined;
  readonly datasetRows: ReadonlyMap<string, number>;
  readonly now: number;
}

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
/** How long after its last row an experiment counts as running. */
const REST_MS = 60_000;
/** How long an experiment without rows counts as running. */
const START_MS = 120_000;

/** Whether rows of an experiment are still coming: it was made within the hour, and its last row came a moment ago. */
export function isRunning(experiment: Experiment, figures: ExperimentFigures | null, now: number): boolean {
  const age = now - Date.parse(experiment.created);
  if (Number.isNaN(age) || age > HOUR_MS || figures === null) return false;
  const last = figures.last === null ? null : momentOf(figures.last);
  return last === null ? age < START_MS : now - last.getTime() < REST_MS;
}

/** The experiments that there were at a version, as the server takes it; all for now. */
export function madeBefore(experiments: readonly Experiment[], version: string): readonly Experiment[] {
  const at = version === "" ? null : momentOf(version);
  return at === null ? experiments : experiments.filter(({ created }) => !(Date.parse(created) >= at.getTime() + SECOND_MS));
}

const NO_FIGURES: ExperimentFigures = {
  rows: 0,
  errors: 0,
  running: 0,
  last: null,
  duration: null,
  tokens: null,
  cost: null,
  scores: new Map(),
};

function textOf({ experiment, by, dataset }: ListedExperiment): string {
  const { name, description, tags, repo, metadata } = experiment;
  const parts = [name, description, ...tags, repo.commit, repo.branch, repo.message, by, dataset];
  return [...parts, metadata === null ? "" : JSON.stringify(metadata)].join("\n").toLowerCase();
}

type Value = string | number | null;

/** The column that shows a score. */
export const scoreColumn = (score: string): string => `score:${score}`;

export const scoreOf = (one: ListedExperiment, score: string): ScoreFigure | null => one.figures?.scores.get(score) ?? null;

function valueOf(one: ListedExperiment, column: string): Value {
  const { experiment, figures } = one;
  if (column.startsWith("score:")) return scoreOf(one, column.slice(6))?.mean ?? null;
  switch (column) {
    case "name":
      return experiment.name;
    case "created":
      return Date.parse(experiment.created) || null;
    case "by":
      return one.by;
    case "commit":
      return experiment.repo.commit;
    case "dataset":
      return one.dataset;
    case "rows":
      return figures?.rows ?? null;
    case "duration":
      return figures?.duration ?? null;
    case "tokens":
      return figures?.tokens ?? null;
    case "cost":
      return figures?.cost ?? null;
    case "errors":
      return figures?.errors ?? null;
    default:
      return null;
  }
}

/** Compares values; those that are absent come last in either direction. */
function compared(a: Value, b: Value, isDescending: boolean): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  const order =
    typeof a === "string" || typeof b === "string"
      ? String(a).localeCompare(String(b), "en", { numeric: true, sensitivity: "base" })
      : a - b;
  return isDescending ? -order : order;
}

/** The column and the direction of a sort as it stands in the address. */
export const sortOf = (sort: string): { readonly column: string; readonly isDescending: boolean } =>
  sort === "" ? { column: "created", isDescending: true } : { column: sort.replace(/^-/, ""), isDescending: sort.startsWith("-") };

const TEXT_COLUMNS: ReadonlySet<string> = new Set(["name", "by", "commit", "dataset"]);

/** The sort after a head was chosen: numbers start with the greatest, texts with the first. */
export function nextSort(sort: string, column: string): string {
  const current = sortOf(sort);
  const isDescending = current.column === column ? !current.isDescending : !TEXT_COLUMNS.has(column);
  const next = `${isDescending ? "-" : ""}${column}`;
  return next === "-created" ? "" : next;
}

function joined(sources: Sources): readonly ListedExperiment[] {
  const { experiments, figures, baseline, people, datasets, datasetRows, now } = sources;
  const base = baseline === null ? null : (figures.get(baseline) ?? null);
  return experiments.map((experiment) => {
    const own = figures.get(experiment.id) ?? null;
    const { datasetId, userId, repo } = experiment;
    return {
      experiment,
      figures: own,
      base: experiment.id === baseline ? null : base,
      isBaseline: experiment.id === baseline,
      isRunning: isRunning(experiment, own, now),
      by: (userId === null ? undefined : people.get(userId)) ?? repo.author,
      dataset: datasetId === null || datasets === undefined ? null : (datasets.get(datasetId) ?? datasetId),
      expected: datasetId === null ? null : (datasetRows.get(datasetId) ?? null),
    };
  });
}

/** The experiments that contain a text anywhere, sorted. */
export function listed(sources: Sources, filter: string, sort: string): readonly ListedExperiment[] {
  const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const { column, isDescending } = sortOf(sort);
  return joined(sources)
    .filter((one) => {
      const text = words.length === 0 ? "" : textOf(one);
      return words.every((word) => text.includes(word));
    })
    .toSorted(
      (a, b) =>
        compared(valueOf(a, column), valueOf(b, column), isDescending) ||
        compared(valueOf(a, "created"), valueOf(b, "created"), true),
    );
}

/** Completes what is known of experiments by empty figures for those without rows. */
export const withEmpty = (ids: readonly string[], figures: ReadonlyMap<string, ExperimentFigures>) =>
  new Map(ids.map((id) => [id, figures.get(id) ?? NO_FIGURES]));

/** The names of all scores, those of most experiments first. */
export function scoreNames(figures: Iterable<ExperimentFigures>): readonly string[] {
  const counts = new Map<string, number>();
  for (const { scores } of figures) for (const name of scores.keys()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([name]) => name);
}
