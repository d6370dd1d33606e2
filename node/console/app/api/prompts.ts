// Prompts and functions, which are records of one kind: their versions, the environments that use them, and their runs.
import { Exact, numeric } from "../lib/json";
import { call } from "./client";
import { isRecord, list, record, text, textOrNull, type Fields } from "./narrow";
import { called, compared, ident, item, literal, runQuery, sourceOf, written, type Expression } from "./query";

/** A version of a prompt or of a function. */
export interface PromptRecord {
  readonly id: string;
  /** The transaction that wrote the version. */
  readonly version: string;
  readonly projectId: string;
  readonly name: string;
  readonly slug: string;
  readonly description: string;
  /** What a prompt consists of; empty for code. */
  readonly data: Fields;
  readonly hasData: boolean;
  /** What it is for, such as `scorer`; empty for an ordinary prompt. */
  readonly type: string;
  /** What runs: `prompt`, `code` and so on. */
  readonly kind: string;
  readonly code: Fields;
  readonly metadata: Fields;
  /** Whether it is part of an experiment, and not shown in lists. */
  readonly isInternal: boolean;
  /** The fields as they are sent to write the same version again. */
  readonly whole: Fields;
}

const WHOLE = ["name", "slug", "description", "prompt_data", "function_data", "function_type", "function_schema", "origin", "tags", "metadata"];

const fieldsOf = (value: unknown): Fields => (isRecord(value) && !(value instanceof Exact) ? value : {});

function readRecord(value: unknown): PromptRecord {
  const found = record(value, "prompt");
  const code = fieldsOf(found["function_data"]);
  return {
    id: text(found, "id"),
    version: text(found, "_xact_id"),
    projectId: text(found, "project_id"),
    name: text(found, "name"),
    slug: text(found, "slug"),
    description: textOrNull(found, "description") ?? "",
    data: fieldsOf(found["prompt_data"]),
    hasData: isRecord(found["prompt_data"]),
    type: textOrNull(found, "function_type") ?? "",
    kind: textOrNull(code, "type") ?? "prompt",
    code,
    metadata: fieldsOf(found["metadata"]),
    isInternal: fieldsOf(found["origin"])["internal"] === true,
    whole: Object.fromEntries(WHOLE.filter((key) => found[key] != null).map((key) => [key, found[key]])),
  };
}

const until = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });

const objects = (answer: unknown): readonly unknown[] => list(record(answer, "prompts"), "objects");

/** Reads all prompts and functions of a project. */
export async function readPromptRecords(organization: string, projectId: string, signal?: AbortSignal) {
  const answer = await call("GET", `/v1/function?project_id=${projectId}`, { organization, isExact: true, ...until(signal) });
  return objects(answer).map(readRecord);
}

/** The newest version of what has a slug, or null if the project has none that this person may see. */
export async function readPromptNamed(organization: string, projectId: string, slug: string, signal?: AbortSignal) {
  const path = `/v1/function?project_id=${projectId}&slug=${encodeURIComponent(slug)}`;
  const [first] = objects(await call("GET", path, { organization, isExact: true, ...until(signal) }));
  return first === undefined ? null : readRecord(first);
}

export async function readPromptVersion(organization: string, id: string, version: string, signal?: AbortSignal) {
  const path = `/v1/function/${id}?version=${encodeURIComponent(version)}`;
  return readRecord(await call("GET", path, { organization, isExact: true, ...until(signal) }));
}

/** A write that made a version. */
export interface PromptVersion {
  readonly version: string;
  /** What the writer noted; empty for nothing. */
  readonly note: string;
  /** The id of the person who saved it in the console; empty if it was written otherwise. */
  readonly author: string;
}

/**
 * The key of the metadata below which the console notes what a version is for. The server keeps no note of its own, and a
 * merge by another client keeps the metadata: so a note says which version it follows, and counts for the next one only.
 */
const NOTE = "__note";

export const MOST_VERSIONS = 500;

const sourceOfPrompts = (projectId: string): Expression => ({
  op: "function",
  name: ident("project_functions"),
  args: [literal(projectId)],
});

/** Reads the versions, the newest first, out of the writes in the order of time. */
export function versionsIn(rows: readonly Fields[]): readonly PromptVersion[] {
  const events = rows
    .map((row) => ({ version: String(row["_xact_id"]), note: fieldsOf(fieldsOf(row["metadata"])[NOTE]) }))
    .sort((one, other) => one.version.padStart(20, "0").localeCompare(other.version.padStart(20, "0")));
  return events
    .map(({ version, note }, index): PromptVersion => {
      const isOwn = textOrNull(note, "after") === (events[index - 1]?.version ?? "");
      const of = (key: string): string => (isOwn ? (textOrNull(note, key) ?? "") : "");
      return { version, note: of("text"), author: of("by") };
    })
    .reverse();
}

export async function readPromptVersions(organization: string, projectId: string, id: string, signal?: AbortSignal) {
  const query = {
    select: ["_xact_id", "metadata"].map((name) => item(name, ident(name))),
    from: sourceOfPrompts(projectId),
    filter: [compared("eq", ident("id"), literal(id))],
    limit: MOST_VERSIONS,
  };
  return versionsIn((await runQuery(organization, query, { auditLog: true, ...until(signal) })).rows);
}

const countsIn = (rows: readonly Fields[]): ReadonlyMap<string, number> =>
  new Map(rows.flatMap((row) => (typeof row["id"] === "string" ? [[row["id"], numeric(row["n"]) ?? 0] as const] : [])));

const COUNT = item("n", called("count", literal(1)));

/** Counts the versions of each record. */
export async function countPromptVersions(organization: string, projectId: string, ids: readonly string[], signal?: AbortSignal) {
  if (ids.length === 0) return new Map<string, number>();
  const query = {
    dimensions: [item("id", ident("id"))],
    measures: [COUNT],
    from: sourceOfPrompts(projectId),
    filter: [compared("in", ident("id"), literal(ids))],
    limit: ids.length,
  };
  return countsIn((await runQuery(organization, query, { auditLog: true, ...until(signal) })).rows);
}

/** Counts the calls of models that name a prompt, as the SDKs and the server log them, since a moment. */
export async function countPromptUses(organization: string, projectId: string, since: Date, signal?: AbortSignal) {
  const query = {
    dimensions: [item("id", written("metadata.prompt.id"))],
    measures: [COUNT],
    from: sourceOf("project_logs", projectId),
    filter: [compared("ge", ident("created"), literal(since.toISOString())), written("metadata.prompt.id is not null")],
    limit: 1000,
  };
  return countsIn((await runQuery(organization, query, until(signal))).rows);
}

export interface Environment {
  readonly slug: string;
  readonly name: string;
}

export async function readEnvironments(organization: string, signal?: AbortSignal): Promise<readonly Environment[]> {
  return objects(await call("GET", "/environment", { organization, ...until(signal) })).map((value) => {
    const found = record(value, "environment");
    return { slug: text(found, "slug"), name: text(found, "name") };
  });
}

export async function makeEnvironment(organization: string, name: string, slug: string): Promise<void> {
  await call("POST", "/environment", { organization, body: { name, slug } });
}

/** The version that an environment uses. */
export interface Pinned {
  readonly slug: string;
  readonly version: string;
}

export async function readPinned(organization: string, id: string, signal?: AbortSignal): Promise<readonly Pinned[]> {
  return objects(await call("GET", `/environment-object/prompt/${id}`, { organization, ...until(signal) })).map((value) => {
    const found = record(value, "environment");
    return { slug: text(found, "environment_slug"), version: text(found, "object_version") };
  });
}

/** How many records are asked for their environments, and how many at once: there is no call for all of them. */
const PINNED_MAX = 200;
const AT_ONCE = 6;

export async function readAllPinned(organization: string, ids: readonly string[], signal?: AbortSignal) {
  const found = new Map<string, readonly Pinned[]>();
  const waiting = ids.slice(0, PINNED_MAX);
  const work = async (): Promise<void> => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) found.set(id, await readPinned(organization, id, signal));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found;
}

const pinPath = (id: string, slug: string): string => `/environment-object/prompt/${id}/${encodeURIComponent(slug)}`;

export async function pinVersion(organization: string, id: string, { slug, version }: Pinned): Promise<void> {
  await call("PUT", pinPath(id, slug), { organization, body: { object_version: version } });
}

export async function unpinVersion(organization: string, id: string, slug: string): Promise<void> {
  await call("DELETE", pinPath(id, slug), { organization });
}

/** What a new version says of itself. */
export interface NewNote {
  readonly text: string;
  readonly by: string;
}

/**
 * Writes a version that replaces the one before it, with everything that it does not change. A merge would keep the
 * members of the prompt that were taken away.
 */
export async function savePrompt(
  organization: string,
  before: PromptRecord,
  change: { readonly data?: Fields; readonly from?: PromptRecord },
  note: NewNote,
): Promise<PromptRecord> {
  const source = change.from ?? before;
  const data = change.data ?? (source.hasData ? source.data : null);
  const body = {
    ...source.whole,
    project_id: before.projectId,
    slug: before.slug,
    ...(data === null ? {} : { prompt_data: data }),
    metadata: { ...source.metadata, [NOTE]: { ...note, after: before.version } },
  };
  return readRecord(await call("PUT", "/v1/function", { organization, body, isExact: true }));
}

export interface NewPrompt {
  readonly name: string;
  readonly slug: string;
  readonly data: Fields;
  readonly by: string;
}

/** Makes a prompt. If the slug is taken, the server gives the record that has it, unchanged. */
export async function makePromptRecord(organization: string, projectId: string, { name, slug, data, by }: NewPrompt) {
  const metadata = { [NOTE]: { text: "", by, after: "" } };
  const body = { project_id: projectId, name, slug, prompt_data: data, function_data: { type: "prompt" }, metadata };
  return readRecord(await call("POST", "/v1/function", { organization, body }));
}

export interface PromptDetails {
  readonly name: string;
  readonly slug: string;
  readonly description: string;
}

export async function changePromptDetails(organization: string, id: string, details: PromptDetails): Promise<PromptRecord> {
  return readRecord(await call("PATCH", `/v1/function/${id}`, { organization, body: { ...details } }));
}

export async function deletePromptRecord(organization: string, id: string): Promise<void> {
  await call("DELETE", `/v1/function/${id}`, { organization });
}

/** What the spans of a run tell. */
export interface RunUse {
  readonly root: string;
  readonly tokens: number | null;
  readonly cost: number | null;
}

/** Reads what a run used, by the row of its first span; null while it is not in the logs yet. */
export async function readRunUse(organization: string, projectId: string, rowId: string, signal?: AbortSignal): Promise<RunUse | null> {
  const query = {
    select: ["metrics", "root_span_id"].map((name) => item(name, ident(name))),
    from: sourceOf("project_logs", projectId, "summary"),
    filter: [compared("eq", ident("id"), literal(rowId))],
    limit: 1,
  };
  const [row] = (await runQuery(organization, query, until(signal))).rows;
  if (row === undefined) return null;
  const metrics = fieldsOf(row["metrics"]);
  return { root: text(row, "root_span_id"), tokens: numeric(metrics["total_tokens"]), cost: numeric(metrics["estimated_cost"]) };
}
