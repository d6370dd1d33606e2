// What the cells of a playground have run: their spans, which the server writes, and the experiments made of them.
import { call } from "./client";
import { isRecord, numberOrNull, record, text, textOrNull, type Fields } from "./narrow";
import { called, columns, compared, ident, item, literal, runQuery, sourceOf, written, type Expression } from "./query";

/** What is counted of the model calls of a cell, without those of its scorers. */
export interface RunFigures {
  readonly calls: number;
  readonly tokens: number | null;
  /** In dollars. */
  readonly cost: number | null;
  /** In milliseconds, from the start of the first call to the end of the last. */
  readonly duration: number | null;
}

const PAGE = 1000;

/** How many traces one query asks for. */
export const ROOTS_MAX = 100;

const ofRoots = (roots: readonly string[]): Expression => compared("in", ident("root_span_id"), literal(roots));

/** Counts the model calls of some runs, by their root spans. Runs without such calls are absent. */
export async function readRunFigures(organization: string, session: string, roots: readonly string[]) {
  const figures = new Map<string, RunFigures>();
  const query = {
    dimensions: [item("root", ident("root_span_id"))],
    measures: [
      item("calls", called("count", literal(1))),
      item("tokens", called("sum", ident("metrics", "tokens"))),
      item("cost", called("sum", called("estimated_cost"))),
      item("start", called("min", ident("metrics", "start"))),
      item("end", called("max", ident("metrics", "end"))),
    ],
    from: sourceOf("playground_logs", session),
    filter: [
      ofRoots(roots),
      written("span_attributes.type = 'llm'"),
      written("span_attributes.purpose IS NULL OR span_attributes.purpose != 'scorer'"),
    ],
    limit: roots.length,
  };
  for (const row of (await runQuery(organization, query)).rows) {
    const [start, end] = [numberOrNull(row["start"]), numberOrNull(row["end"])];
    figures.set(text(row, "root"), {
      calls: numberOrNull(row["calls"]) ?? 0,
      tokens: numberOrNull(row["tokens"]),
      cost: numberOrNull(row["cost"]),
      duration: start === null || end === null ? null : (end - start) * 1000,
    });
  }
  return figures;
}

/** A run that was kept: what a cell had at its end. */
export interface KeptRun {
  readonly variant: string;
  readonly row: string;
  /** What ran, as the page has it. */
  readonly of: string;
  readonly root: string;
  readonly output: unknown;
  /** Why it failed; null if it did not. */
  readonly failure: string | null;
  readonly scores: readonly ScoreGiven[];
  readonly figures: RunFigures | null;
  /** In milliseconds since 1970. */
  readonly started: number | null;
  readonly ended: number | null;
}

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});

/** The key of the metadata below which a root row has what it was of. */
const KEY = "assay_cell";

const milliseconds = (seconds: unknown): number | null => (typeof seconds === "number" ? seconds * 1000 : null);

function readGiven(value: unknown): readonly ScoreGiven[] {
  if (!isRecord(value)) return [];
  const [scorer, name] = [textOrNull(value, "scorer"), textOrNull(value, "name")];
  if (scorer === null || name === null) return [];
  const [error, reason] = [textOrNull(value, "error"), textOrNull(value, "reason") ?? ""];
  return [{ scorer, name, value: numberOrNull(value["value"]), error, reason }];
}

function readKept(row: Fields): readonly KeptRun[] {
  const kept = fieldsOf(row["metadata"])[KEY];
  if (!isRecord(kept)) return [];
  const [variant, of, id] = ["variant", "of", "row"].map((key) => textOrNull(kept, key) ?? "");
  const { figures, scores } = kept;
  const metrics = fieldsOf(row["metrics"]);
  const { error } = row;
  return [
    {
      variant: variant ?? "",
      of: of ?? "",
      row: id ?? "",
      root: text(row, "root_span_id"),
      output: row["output"] ?? null,
      failure: error == null ? null : typeof error === "string" ? error : JSON.stringify(error),
      scores: Array.isArray(scores) ? scores.flatMap(readGiven) : [],
      figures: isRecord(figures)
        ? {
            calls: numberOrNull(figures["calls"]) ?? 0,
            tokens: numberOrNull(figures["tokens"]),
            cost: numberOrNull(figures["cost"]),
            duration: numberOrNull(figures["duration"]),
          }
        : null,
      started: milliseconds(metrics["start"]),
      ended: milliseconds(metrics["end"]),
    },
  ];
}

/** What the metadata of a root row say, so that `readKeptRuns` finds the cell again. */
export const keptMetadata = ({ variant, row, of, scores, figures }: Pick<KeptRun, "variant" | "row" | "of" | "scores" | "figures">): Fields => ({
  [KEY]: { variant, row, of, scores, figures },
});

/** Reads the last run of each cell. */
export async function readKeptRuns(organization: string, session: string, signal?: AbortSignal): Promise<readonly KeptRun[]> {
  const runs: KeptRun[] = [];
  for (let cursor = ""; ; ) {
    const query = {
      select: columns("root_span_id", "output", "error", "metadata", "metrics"),
      from: sourceOf("playground_logs", session),
      filter: [written("is_root")],
      limit: PAGE,
      ...(cursor === "" ? {} : { cursor }),
    };
    const page = await runQuery(organization, query, signal === undefined ? {} : { signal });
    runs.push(...page.rows.flatMap(readKept));
    if (page.rows.length < PAGE || page.cursor === null) return runs;
    cursor = page.cursor;
  }
}

/** Keeps the root rows of runs. A row of the same id is replaced. */
export async function keepRuns(organization: string, session: string, rows: readonly Fields[]): Promise<void> {
  const body = { rows: rows.map((row) => ({ ...row, prompt_session_id: session, log_id: "x" })), api_version: 2 };
  await call("POST", "/logs3", { organization, body, isExact: true });
}

/** What a span of a playground has and that of an experiment may not. */
const OF_PLACE: ReadonlySet<string> = new Set([
  "_xact_id",
  "_pagination_key",
  "_async_scoring_state",
  "org_id",
  "project_id",
  "prompt_session_id",
  "log_id",
  "is_root",
  "comments",
  "audit_data",
]);

/** Reads the spans of some runs below their roots, as they can be inserted elsewhere. */
export async function readRunSpans(organization: string, session: string, roots: readonly string[]): Promise<readonly Fields[]> {
  const spans: Fields[] = [];
  for (let cursor = ""; ; ) {
    const query = {
      select: [{ op: "star" }],
      from: sourceOf("playground_logs", session),
      filter: [ofRoots(roots)],
      limit: PAGE,
      ...(cursor === "" ? {} : { cursor }),
    };
    const page = await runQuery(organization, query, { isExact: true });
    for (const row of page.rows) {
      if (row["is_root"] === true) continue;
      spans.push(Object.fromEntries(Object.entries(row).filter(([key, value]) => value !== null && !OF_PLACE.has(key))));
    }
    if (page.rows.length < PAGE || page.cursor === null) return spans;
    cursor = page.cursor;
  }
}

export interface NewExperiment {
  readonly name: string;
  readonly metadata: Fields;
  readonly dataset: { readonly id: string; readonly version: string } | null;
}

/** Makes an experiment. If the name is taken, the server adds to it; the name that it has is returned. */
export async function makeExperiment(organization: string, projectId: string, { name, metadata, dataset }: NewExperiment) {
  const of = dataset === null ? {} : { dataset_id: dataset.id, dataset_version: dataset.version };
  const body = { project_id: projectId, name, metadata, ensure_new: true, ...of };
  const made = record(await call("POST", "/v1/experiment", { organization, body }), "experiment");
  return { id: text(made, "id"), name: text(made, "name") };
}

export async function insertEvents(organization: string, experiment: string, events: readonly Fields[]): Promise<void> {
  await call("POST", `/v1/experiment/${experiment}/insert`, { organization, body: { events }, isExact: true });
}

/** A score that a scorer gave, or why it gave none. */
export interface ScoreGiven {
  /** The scorer, which may give several scores. */
  readonly scorer: string;
  readonly name: string;
  readonly value: number | null;
  readonly error: string | null;
  /** Why the scorer decided so; empty if it does not say. */
  readonly reason: string;
}

const refused = (scorer: string, error: string): ScoreGiven => ({ scorer, name: scorer, value: null, error, reason: "" });

function readScore(scorer: string, value: unknown): ScoreGiven {
  const given = isRecord(value) ? value : { score: value };
  const score = typeof given["score"] === "boolean" ? Number(given["score"]) : (given["score"] ?? null);
  const name = textOrNull(given, "name") ?? scorer;
  const metadata = fieldsOf(given["metadata"]);
  const reason = [textOrNull(metadata, "choice"), textOrNull(metadata, "rationale")].filter((part) => part !== null).join(": ");
  if (score === null) return { scorer, name, value: null, error: null, reason };
  const isScore = typeof score === "number" && score >= 0 && score <= 1;
  return isScore
    ? { scorer, name, value: score, error: null, reason }
    : refused(scorer, `The scorer gave ${JSON.stringify(value)}, which is no score from 0 to 1.`);
}

/** Reads what a scorer gave: a number, a flag, a score with its name, or a list of such. */
export const readScores = (scorer: string, value: unknown): readonly ScoreGiven[] =>
  (Array.isArray(value) ? value : [value]).map((one) => readScore(scorer, one));

/** The score of a scorer that failed. */
export const failedScore = refused;

/** Whether a call failed because no AI secret serves its model, by the server's words. */
export const isWithoutSecret = (message: string): boolean => message.startsWith("no provider secret serves the model");
