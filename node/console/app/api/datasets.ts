// Calls about datasets: their records, and their rows as the console edits them.
import { call } from "./client";
import { isRecord, list, record, text, textOrNull, type Fields } from "./narrow";
import { called, columns, compared, ident, item, literal, runQuery, sourceOf, type Expression } from "./query";

export interface Dataset {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly metadata: Fields | null;
  readonly created: string;
}

/** What the rows of a dataset are at present. */
export interface DatasetFill {
  readonly rows: number;
  /** The newest transaction among the rows. */
  readonly last: string | null;
}

/** An experiment that ran over a dataset. */
export interface DatasetUse {
  readonly id: string;
  readonly name: string;
  readonly datasetId: string;
  readonly version: string | null;
  readonly created: string;
}

/** The object and the row that a row was copied from. */
export interface Origin {
  readonly kind: string;
  readonly objectId: string;
  readonly id: string;
}

export interface DatasetRow {
  readonly id: string;
  readonly input: unknown;
  readonly expected: unknown;
  readonly metadata: unknown;
  readonly tags: unknown;
  readonly created: string | null;
  readonly origin: Origin | null;
  /** The transaction that wrote the row last. */
  readonly transaction: string;
  /** Where the row stands among all, as a text that sorts: newer rows have greater ones. */
  readonly place: string;
  /** Whether the row fulfils the filter that it was asked for with. */
  readonly isMatch: boolean;
}

export interface DatasetPage {
  readonly rows: readonly DatasetRow[];
  readonly cursor: string | null;
  /** The newest transaction that the read has seen. */
  readonly transaction: string;
}

/** Values longer than this are cut in lists, and read in full when they are opened. */
export const LIST_PREVIEW = 4000;

const COLUMNS = columns("id", "input", "expected", "metadata", "tags", "created", "origin", "_xact_id", "_pagination_key");

function readDataset(value: unknown): Dataset {
  const dataset = record(value, "dataset");
  const metadata = dataset["metadata"];
  return {
    id: text(dataset, "id"),
    name: text(dataset, "name"),
    description: textOrNull(dataset, "description") ?? "",
    metadata: isRecord(metadata) ? metadata : null,
    created: text(dataset, "created"),
  };
}

function readOrigin(value: unknown): Origin | null {
  if (!isRecord(value)) return null;
  const [kind, objectId, id] = ["object_type", "object_id", "id"].map((key) => textOrNull(value, key));
  return kind == null || objectId == null || id == null ? null : { kind, objectId, id };
}

export function readDatasetRow(row: Fields): DatasetRow {
  return {
    id: text(row, "id"),
    input: row["input"] ?? null,
    expected: row["expected"] ?? null,
    metadata: row["metadata"] ?? null,
    tags: row["tags"] ?? null,
    created: textOrNull(row, "created"),
    origin: readOrigin(row["origin"]),
    transaction: textOrNull(row, "_xact_id") ?? "",
    place: textOrNull(row, "_pagination_key") ?? "",
    isMatch: row["is_match"] !== false && row["is_match"] !== null,
  };
}

const objects = (answer: unknown, what: string): readonly unknown[] => list(record(answer, what), "objects");

/** A signal as an option, which may not be undefined. */
const until = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });

export async function readDatasets(organization: string, projectId: string, signal?: AbortSignal) {
  const answer = await call("GET", `/v1/dataset?project_id=${projectId}`, { organization, ...until(signal) });
  return objects(answer, "datasets").map(readDataset);
}

/** The dataset of a name, or null if the project has none that this person may see. */
export async function readNamedDataset(organization: string, projectId: string, name: string, signal: AbortSignal) {
  const path = `/v1/dataset?project_id=${projectId}&dataset_name=${encodeURIComponent(name)}`;
  const [first] = objects(await call("GET", path, { organization, signal }), "datasets");
  return first === undefined ? null : readDataset(first);
}

export interface DatasetChange {
  readonly name?: string;
  readonly description?: string;
  readonly metadata?: Fields | null;
}

/** Makes a dataset. If the name is taken, the server gives the dataset that has it. */
export async function makeDataset(organization: string, projectId: string, change: DatasetChange): Promise<Dataset> {
  const body = { project_id: projectId, ...change };
  return readDataset(await call("POST", "/v1/dataset", { organization, body }));
}

export async function changeDataset(organization: string, id: string, change: DatasetChange): Promise<Dataset> {
  return readDataset(await call("PATCH", `/v1/dataset/${id}`, { organization, body: { ...change } }));
}

export async function deleteDataset(organization: string, id: string): Promise<void> {
  await call("DELETE", `/v1/dataset/${id}`, { organization });
}

const ROWS = called("count", literal(1));

/** Counts the rows of datasets. Those without rows are absent. */
export async function readFills(organization: string, ids: readonly string[], signal: AbortSignal) {
  const fills = new Map<string, DatasetFill>();
  if (ids.length === 0) return fills;
  const query = {
    dimensions: [item("id", ident("dataset_id"))],
    measures: [item("rows", ROWS), item("last", called("max", ident("_xact_id")))],
    from: { op: "function", name: ident("dataset"), args: ids.map(literal) },
    limit: ids.length,
  };
  for (const row of (await runQuery(organization, query, { signal })).rows) {
    const rows = row["rows"];
    fills.set(text(row, "id"), { rows: typeof rows === "number" ? rows : 0, last: textOrNull(row, "last") });
  }
  return fills;
}

export async function countRows(organization: string, id: string, filter: Filter, version: string, signal: AbortSignal) {
  const query = { dimensions: [], measures: [item("rows", ROWS)], from: sourceOf("dataset", id), filter };
  const rows = (await runQuery(organization, query, { signal, version })).rows[0]?.["rows"];
  return typeof rows === "number" ? rows : 0;
}

export async function readUses(organization: string, projectId: string, signal: AbortSignal) {
  const answer = await call("GET", `/v1/experiment?project_id=${projectId}`, { organization, signal });
  return objects(answer, "experiments").flatMap((value): readonly DatasetUse[] => {
    const experiment = record(value, "experiment");
    const datasetId = textOrNull(experiment, "dataset_id");
    if (datasetId === null) return [];
    const version = textOrNull(experiment, "dataset_version");
    return [{ id: text(experiment, "id"), name: text(experiment, "name"), datasetId, version, created: text(experiment, "created") }];
  });
}

export type Filter = readonly Expression[];

export interface RowsRequest {
  readonly filter: Filter;
  readonly version: string;
  readonly limit: number;
  readonly cursor?: string;
  /** Where values are cut; absent for whole values. */
  readonly preview?: number;
  /** A condition whose outcome is told for each row. */
  readonly match?: Expression;
}

export async function readRows(organization: string, id: string, request: RowsRequest, signal?: AbortSignal): Promise<DatasetPage> {
  const { filter, version, limit, cursor = "", preview, match } = request;
  const query = {
    select: match === undefined ? COLUMNS : [...COLUMNS, item("is_match", match)],
    from: sourceOf("dataset", id),
    filter,
    limit,
    ...(cursor === "" ? {} : { cursor }),
    ...(preview === undefined ? {} : { preview_length: preview }),
  };
  const page = await runQuery(organization, query, { version, ...until(signal) });
  return {
    rows: page.rows.map(readDatasetRow),
    cursor: page.rows.length < limit ? null : page.cursor,
    transaction: page.transaction ?? "0",
  };
}

const CHUNK = 500;

/** Parts of a list that one call can take. */
export const chunksOf = <Kind>(all: readonly Kind[], size = CHUNK): readonly (readonly Kind[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size));

/** Reads whole rows by their ids. Those that are not there are absent. */
export async function readRowsById(organization: string, id: string, ids: readonly string[], version = "", signal?: AbortSignal) {
  const rows: DatasetRow[] = [];
  for (const chunk of chunksOf(ids, 100)) {
    const filter = [compared("in", ident("id"), literal(chunk))];
    rows.push(...(await readRows(organization, id, { filter, version, limit: chunk.length }, signal)).rows);
  }
  return rows;
}

/** Which of some rows exist, with the transaction that wrote each last. */
export async function readTransactions(organization: string, id: string, ids: readonly string[], signal?: AbortSignal) {
  const found = new Map<string, string>();
  for (const chunk of chunksOf(ids)) {
    const filter = [compared("in", ident("id"), literal(chunk))];
    const query = { select: columns("id", "_xact_id"), from: sourceOf("dataset", id), filter, limit: chunk.length };
    for (const row of (await runQuery(organization, query, until(signal))).rows) {
      found.set(text(row, "id"), textOrNull(row, "_xact_id") ?? "");
    }
  }
  return found;
}

const EACH_PAGE = 1000;

/** Gives some columns of all rows, page by page. */
export async function eachPage(
  organization: string,
  id: string,
  wanted: readonly string[],
  version: string,
  take: (rows: readonly Fields[]) => void,
  signal?: AbortSignal,
): Promise<void> {
  let cursor = "";
  do {
    const from = cursor === "" ? {} : { cursor };
    const query = { select: columns(...wanted), from: sourceOf("dataset", id), limit: EACH_PAGE, ...from };
    const page = await runQuery(organization, query, { version, ...until(signal) });
    take(page.rows);
    cursor = page.rows.length === EACH_PAGE ? (page.cursor ?? "") : "";
  } while (cursor !== "");
}

/** Writes rows in one transaction. */
export async function insertRows(organization: string, id: string, events: readonly Fields[], signal?: AbortSignal): Promise<void> {
  await call("POST", `/v1/dataset/${id}/insert`, { organization, body: { events }, ...until(signal) });
}
