// What is done to many rows at once: tags, assignment, deletion, and copies in a dataset.
import { call } from "../../api/client";
import { isRecord, list, record, text, textOrNull, type Fields } from "../../api/narrow";
import { cache } from "../../api/queries";
import {
  columns,
  compared,
  ident,
  item,
  literal,
  runQuery,
  sourceOf,
  type Expression,
  type Item,
} from "../../api/query";
import { queryOptions } from "@tanstack/react-query";
import { ASSIGNMENTS } from "./views";

/** The project whose rows are changed. */
export interface Place {
  readonly organization: string;
  readonly projectId: string;
}

type Event = Readonly<Record<string, unknown>>;

const CHUNK = 500;
const PAGE = 1000;

export const chunks = <Kind>(all: readonly Kind[]): readonly (readonly Kind[])[] =>
  Array.from({ length: Math.ceil(all.length / CHUNK) }, (_, index) => all.slice(index * CHUNK, (index + 1) * CHUNK));

/** Reads all rows of a source that fulfil a condition, page by page. */
async function readAll(
  organization: string,
  from: Expression,
  condition: Expression,
  select: readonly Item[],
): Promise<readonly Fields[]> {
  const rows: Fields[] = [];
  let cursor = "";
  do {
    const query = { select, from, filter: [condition], limit: PAGE, ...(cursor === "" ? {} : { cursor }) };
    const page = await runQuery(organization, query);
    rows.push(...page.rows);
    cursor = page.rows.length === PAGE ? (page.cursor ?? "") : "";
  } while (cursor !== "");
  return rows;
}

/** Reads some columns of the rows whose values of a column are listed. */
export async function readRows(
  { organization, projectId }: Place,
  column: string,
  values: readonly string[],
  select: readonly Item[],
): Promise<readonly Fields[]> {
  const rows: Fields[] = [];
  for (const chunk of chunks(values)) {
    const condition = compared("in", ident(column), literal(chunk));
    rows.push(...(await readAll(organization, sourceOf("project_logs", projectId), condition, select)));
  }
  return rows;
}

async function insert({ organization, projectId }: Place, events: readonly Event[]): Promise<void> {
  for (const chunk of chunks(events)) {
    await call("POST", `/v1/project_logs/${projectId}/insert`, { organization, body: { events: chunk } });
  }
}

/** Reads the lists again that could show what was changed. */
export const refreshLists = (organization: string): Promise<void> =>
  cache.invalidateQueries({ queryKey: ["logs", organization] });

export const idOf = (row: Fields): string => textOrNull(row, "id") ?? "";

const tagsOf = (row: Fields): readonly unknown[] => (Array.isArray(row["tags"]) ? row["tags"] : []);

/** Adds a tag to rows that lack it. Returns how many, and how to take it back. Other tags stay, as the server joins them. */
export async function addTag(place: Place, ids: readonly string[], tag: string) {
  const lacking = (await readRows(place, "id", ids, columns("id", "tags"))).filter((row) => !tagsOf(row).includes(tag));
  const merged = lacking.map((row) => ({ id: idOf(row), _is_merge: true }));
  await insert(place, merged.map((event) => ({ ...event, tags: [tag] })));
  return {
    count: lacking.length,
    undo: () => insert(place, merged.map((event) => ({ ...event, _array_delete: [{ path: ["tags"], delete: [tag] }] }))),
  };
}

/** Assigns rows to a person; to nobody if the id is empty. Whoever had them before has them no more. */
export const assign = (place: Place, ids: readonly string[], userId: string): Promise<void> =>
  insert(
    place,
    ids.map((id) => ({
      id,
      _is_merge: true,
      metadata: { [ASSIGNMENTS[1]]: userId === "" ? [] : [userId] },
      _merge_paths: [[...ASSIGNMENTS]],
    })),
  );

/** Deletes rows, of traces all their spans. Returns how many rows were deleted. */
export async function deleteRows(place: Place, keys: readonly string[], isTraces: boolean): Promise<number> {
  const rows = isTraces ? await readRows(place, "root_span_id", keys, columns("id")) : keys.map((id) => ({ id }));
  await insert(place, rows.map((row) => ({ id: idOf(row), _object_delete: true })));
  return rows.length;
}

export interface Person {
  readonly id: string;
  readonly name: string;
}

function readPerson(value: unknown): Person {
  const user = record(value, "user");
  const name = [textOrNull(user, "given_name"), textOrNull(user, "family_name")].filter((part) => part !== null).join(" ");
  const id = text(user, "id");
  return { id, name: name || (textOrNull(user, "email") ?? id) };
}

export const peopleQuery = (organization: string) =>
  queryOptions({
    queryKey: ["people", organization],
    queryFn: async ({ signal }): Promise<readonly Person[]> => {
      const path = `/v1/user?org_name=${encodeURIComponent(organization)}`;
      return list(record(await call("GET", path, { organization, signal }), "users"), "objects").map(readPerson);
    },
  });

export interface Dataset {
  readonly id: string;
  readonly name: string;
}

const readDataset = (value: unknown): Dataset => {
  const dataset = record(value, "dataset");
  return { id: text(dataset, "id"), name: text(dataset, "name") };
};

export const datasetsQuery = ({ organization, projectId }: Place) =>
  queryOptions({
    queryKey: ["datasets", organization, projectId],
    queryFn: async ({ signal }): Promise<readonly Dataset[]> => {
      const answer = await call("GET", `/v1/dataset?project_id=${projectId}`, { organization, signal });
      return list(record(answer, "datasets"), "objects").map(readDataset);
    },
  });

/** Makes a dataset; one that has the name already is returned. */
export async function makeDataset({ organization, projectId }: Place, name: string): Promise<Dataset> {
  const made = readDataset(await call("POST", "/v1/dataset", { organization, body: { project_id: projectId, name } }));
  await cache.invalidateQueries({ queryKey: ["datasets", organization, projectId] });
  return made;
}

/** Which of some rows a dataset has been filled with before. */
async function knownOrigins(organization: string, datasetId: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const known = new Set<string>();
  for (const chunk of chunks(ids)) {
    const origin = ident("origin", "id");
    const from = sourceOf("dataset", datasetId);
    const rows = await readAll(organization, from, compared("in", origin, literal(chunk)), [item("id", origin)]);
    for (const row of rows) known.add(idOf(row));
  }
  return known;
}

/** A row of logs as a row of a dataset: what was answered is what is expected. */
function datasetEvent(row: Fields, projectId: string): Event {
  const metadata = row["metadata"];
  const tags = tagsOf(row);
  return {
    input: row["input"] ?? null,
    expected: row["expected"] ?? row["output"] ?? null,
    ...(isRecord(metadata) ? { metadata } : {}),
    ...(tags.length === 0 ? {} : { tags }),
    origin: { object_type: "project_logs", object_id: projectId, id: idOf(row), _xact_id: row["_xact_id"] },
  };
}

/** Copies rows to a dataset, except those that are there already. */
export async function addToDataset(place: Place, ids: readonly string[], datasetId: string) {
  const known = await knownOrigins(place.organization, datasetId, ids);
  const wanted = ids.filter((id) => !known.has(id));
  const select = columns("id", "input", "output", "expected", "metadata", "tags", "_xact_id");
  const rows = await readRows(place, "id", wanted, select);
  for (const chunk of chunks(rows)) {
    const events = chunk.map((row) => datasetEvent(row, place.projectId));
    await call("POST", `/v1/dataset/${datasetId}/insert`, { organization: place.organization, body: { events } });
  }
  return { added: rows.length, known: known.size };
}
