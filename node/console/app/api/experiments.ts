// Calls about experiments: their records, what is counted of their rows, and a project's settings about comparisons.
import { call } from "./client";
import { isRecord, list, numberOrNull, record, text, textOrNull, type Fields } from "./narrow";
import { called, columns, compared, ident, item, literal, runQuery, sourceOf, type Expression, type RunOptions } from "./query";

/** What of a repository an experiment ran with. */
export interface RepoInfo {
  readonly commit: string | null;
  readonly branch: string | null;
  readonly isDirty: boolean;
  readonly author: string | null;
  readonly message: string | null;
}

export interface Experiment {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly created: string;
  readonly repo: RepoInfo;
  /** The experiment that it names as its base. */
  readonly baseId: string | null;
  readonly datasetId: string | null;
  readonly datasetVersion: string | null;
  readonly userId: string | null;
  readonly metadata: Fields | null;
  readonly tags: readonly string[];
}

export interface ScoreFigure {
  readonly mean: number;
  readonly deviation: number | null;
  readonly count: number;
}

/** What is counted of an experiment's rows. */
export interface ExperimentFigures {
  readonly rows: number;
  readonly errors: number;
  /** Rows that have started and not ended. */
  readonly running: number;
  /** The newest transaction among the rows. */
  readonly last: string | null;
  /** The mean over rows, in milliseconds. */
  readonly duration: number | null;
  readonly tokens: number | null;
  /** In dollars. */
  readonly cost: number | null;
  readonly scores: ReadonlyMap<string, ScoreFigure>;
}

/** A signal as an option, which may not be undefined. */
const until = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });

const objects = (answer: unknown, what: string): readonly unknown[] => list(record(answer, what), "objects");

function readRepo(value: unknown): RepoInfo {
  const repo = isRecord(value) ? value : {};
  return {
    commit: textOrNull(repo, "commit"),
    branch: textOrNull(repo, "branch") ?? textOrNull(repo, "tag"),
    isDirty: repo["dirty"] === true,
    author: textOrNull(repo, "author_name") ?? textOrNull(repo, "author_email"),
    message: textOrNull(repo, "commit_message"),
  };
}

export function readExperiment(value: unknown): Experiment {
  const experiment = record(value, "experiment");
  const metadata = experiment["metadata"];
  const tags = experiment["tags"];
  return {
    id: text(experiment, "id"),
    name: text(experiment, "name"),
    description: textOrNull(experiment, "description") ?? "",
    created: textOrNull(experiment, "created") ?? "",
    repo: readRepo(experiment["repo_info"]),
    baseId: textOrNull(experiment, "base_exp_id"),
    datasetId: textOrNull(experiment, "dataset_id"),
    datasetVersion: textOrNull(experiment, "dataset_version"),
    userId: textOrNull(experiment, "user_id"),
    metadata: isRecord(metadata) ? metadata : null,
    tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [],
  };
}

const PAGE = 1000;

/** Reads all experiments of a project, the newest first. */
export async function readExperiments(organization: string, projectId: string, signal?: AbortSignal) {
  const found: Experiment[] = [];
  for (let after = ""; ; ) {
    const path = `/v1/experiment?project_id=${projectId}&limit=${PAGE}${after === "" ? "" : `&starting_after=${after}`}`;
    const page = objects(await call("GET", path, { organization, ...until(signal) }), "experiments").map(readExperiment);
    found.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return found;
    after = last.id;
  }
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The experiment of a name or an id, or null if the project has none that this person may see. */
export async function findExperiment(organization: string, projectId: string, name: string, signal?: AbortSignal) {
  const one = async (parameter: string): Promise<Experiment | null> => {
    const path = `/v1/experiment?project_id=${projectId}&${parameter}`;
    const [first] = objects(await call("GET", path, { organization, ...until(signal) }), "experiments");
    return first === undefined ? null : readExperiment(first);
  };
  const named = await one(`experiment_name=${encodeURIComponent(name)}`);
  return named ?? (UUID.test(name) ? one(`ids=${name}`) : null);
}

export interface ExperimentChange {
  readonly name?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly metadata?: Fields | null;
}

export async function changeExperiment(organization: string, id: string, change: ExperimentChange): Promise<Experiment> {
  return readExperiment(await call("PATCH", `/v1/experiment/${id}`, { organization, body: { ...change } }));
}

export async function deleteExperiment(organization: string, id: string): Promise<void> {
  await call("DELETE", `/v1/experiment/${id}`, { organization });
}

/** The rows of some experiments, one a trace. */
const rowsOf = (ids: readonly string[]): Expression => ({
  op: "function",
  name: ident("experiment"),
  args: ids.map(literal),
  shape: "summary",
});

async function readCounts(organization: string, ids: readonly string[], options: RunOptions): Promise<readonly Fields[]> {
  const metric = (name: string): Expression => ident("metrics", name);
  const query = {
    dimensions: [item("id", ident("experiment_id"))],
    measures: [
      item("rows", called("count", literal(1))),
      item("errors", called("count", ident("error"))),
      item("running", called("sum", ident("span_type_info", "in_progress"))),
      item("last", called("max", ident("_xact_id"))),
      item("duration", called("avg", metric("duration"))),
      item("tokens", called("sum", metric("total_tokens"))),
      item("cost", called("sum", metric("estimated_cost"))),
    ],
    from: rowsOf(ids),
    limit: ids.length,
  };
  return (await runQuery(organization, query, options)).rows;
}

const SCORES_MAX = 10_000;

async function readScores(organization: string, ids: readonly string[], options: RunOptions): Promise<readonly Fields[]> {
  const value = ident("value");
  const query = {
    dimensions: [item("id", ident("experiment_id")), item("score", ident("score"))],
    measures: [
      item("mean", called("avg", value)),
      item("deviation", called("stddev", value)),
      item("n", called("count", value)),
    ],
    unpivot: [{ expr: ident("scores"), alias: ["score", "value"] as const }],
    from: rowsOf(ids),
    limit: SCORES_MAX,
  };
  return (await runQuery(organization, query, options)).rows;
}

function readFigures(counts: Fields, scores: ReadonlyMap<string, ScoreFigure>): ExperimentFigures {
  const duration = numberOrNull(counts["duration"]);
  return {
    rows: numberOrNull(counts["rows"]) ?? 0,
    errors: numberOrNull(counts["errors"]) ?? 0,
    running: numberOrNull(counts["running"]) ?? 0,
    last: textOrNull(counts, "last"),
    duration: duration === null ? null : duration * 1000,
    tokens: numberOrNull(counts["tokens"]),
    cost: numberOrNull(counts["cost"]),
    scores,
  };
}

/** Counts the rows of experiments as of a version; empty for now. Those without rows are absent. */
export async function readExperimentFigures(organization: string, ids: readonly string[], version: string, signal: AbortSignal) {
  const figures = new Map<string, ExperimentFigures>();
  if (ids.length === 0) return figures;
  const [counts, scores] = await Promise.all([
    readCounts(organization, ids, { signal, version }),
    readScores(organization, ids, { signal, version }),
  ]);
  const named = new Map<string, Map<string, ScoreFigure>>();
  for (const row of scores) {
    const [id, name, mean] = [textOrNull(row, "id"), textOrNull(row, "score"), numberOrNull(row["mean"])];
    if (id === null || name === null || mean === null) continue;
    const own = named.get(id) ?? new Map<string, ScoreFigure>();
    named.set(id, own.set(name, { mean, deviation: numberOrNull(row["deviation"]), count: numberOrNull(row["n"]) ?? 0 }));
  }
  for (const row of counts) {
    const id = text(row, "id");
    figures.set(id, readFigures(row, named.get(id) ?? new Map<string, ScoreFigure>()));
  }
  return figures;
}

/** A project's settings, of which the console understands two. The server replaces them as a whole. */
export interface ComparisonSettings {
  readonly all: Fields;
  readonly baseline: string | null;
  /** The expression that pairs rows; null for the server's own, `input`. */
  readonly key: string | null;
}

function readSettings(value: unknown): ComparisonSettings {
  const settings = record(value, "project")["settings"];
  const all = isRecord(settings) ? settings : {};
  return { all, baseline: textOrNull(all, "baseline_experiment_id"), key: textOrNull(all, "comparison_key") };
}

export async function readComparisonSettings(organization: string, projectId: string, signal?: AbortSignal) {
  return readSettings(await call("GET", `/v1/project/${projectId}`, { organization, ...until(signal) }));
}

/** Changes one setting. The others are read first and sent along. */
export async function changeComparisonSettings(
  organization: string,
  projectId: string,
  change: { readonly baseline_experiment_id: string | null } | { readonly comparison_key: string | null },
): Promise<ComparisonSettings> {
  const { all } = await readComparisonSettings(organization, projectId);
  const settings = { ...all, ...change };
  return readSettings(await call("PATCH", `/v1/project/${projectId}`, { organization, body: { settings } }));
}

/** The names of people, by their ids. */
export async function readPeople(organization: string, ids: readonly string[], signal?: AbortSignal) {
  const people = new Map<string, string>();
  if (ids.length === 0) return people;
  const query = ids.map((id) => `ids=${id}`).join("&");
  for (const value of objects(await call("GET", `/v1/user?${query}`, { organization, ...until(signal) }), "users")) {
    const user = record(value, "user");
    const name = ["given_name", "family_name"].map((key) => textOrNull(user, key) ?? "").join(" ").trim();
    people.set(text(user, "id"), name || (textOrNull(user, "email") ?? text(user, "id")));
  }
  return people;
}

/** Where a row of an experiment is. */
export interface RowPlace {
  readonly root: string;
  readonly span: string;
}

/** Looks for a row of an experiment by its id; null if the experiment has no such row. */
export async function readRowPlace(organization: string, experimentId: string, row: string, signal?: AbortSignal) {
  const query = {
    select: columns("root_span_id", "span_id"),
    from: sourceOf("experiment", experimentId),
    filter: [compared("eq", ident("id"), literal(row))],
    limit: 1,
  };
  const [found] = (await runQuery(organization, query, until(signal))).rows;
  const place = found === undefined ? [] : [textOrNull(found, "root_span_id"), textOrNull(found, "span_id")];
  const [root, span] = place;
  return root == null || span == null ? null : { root, span };
}
