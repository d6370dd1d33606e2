// What is done to some rows at once: tags, assignment, deletion, and copies in a dataset.
import { call } from "../../api/client";
import { COPIED, copiedBefore, copyRows } from "../../api/copying";
import { chunksOf, readDatasets, type Dataset } from "../../api/datasets";
import { list, record, text, textOrNull, type Fields } from "../../api/narrow";
import { cache } from "../../api/queries";
import {
  columns,
  compared,
  ident,
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

const PAGE = 1000;

/** Reads all rows of a source that fulfil a condition, page by page. */
async function readAll(
  organization: string,
  from: Expression,
  condition: Expression,
  select: readonly Item[],
  isExact: boolean,
): Promise<readonly Fields[]> {
  const rows: Fields[] = [];
  let cursor = "";
  do {
    const query = { select, from, filter: [condition], limit: PAGE, ...(cursor === "" ? {} : { cursor }) };
    const page = await runQuery(organization, query, { isExact });
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
  isExact = false,
): Promise<readonly Fields[]> {
  const rows: Fields[] = [];
  for (const chunk of chunksOf(values)) {
    const condition = compared("in", ident(column), literal(chunk));
    rows.push(...(await readAll(organization, sourceOf("project_logs", projectId), condition, select, isExact)));
  }
  return rows;
}

async function insert({ organization, projectId }: Place, events: readonly Event[]): Promise<void> {
  for (const chunk of chunksOf(events)) {
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

/** What makes a row wait in the review list. */
const WAITING = { "~__bt_review_lists": { __bt_default_review_list: { status: "PENDING" } } };

/** Assigns rows to a person for review; to nobody if the id is empty. Whoever had them before has them no more. */
export const assign = (place: Place, ids: readonly string[], userId: string): Promise<void> =>
  insert(
    place,
    ids.map((id) => ({
      id,
      _is_merge: true,
      metadata: { [ASSIGNMENTS[1]]: userId === "" ? [] : [userId], ...(userId === "" ? {} : WAITING) },
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

export const datasetsQuery = ({ organization, projectId }: Place) =>
  queryOptions({
    queryKey: ["datasets-of", organization, projectId],
    queryFn: ({ signal }): Promise<readonly Dataset[]> => readDatasets(organization, projectId, signal),
  });

/** Copies rows to a dataset, except those that are there already. */
export async function addToDataset(place: Place, ids: readonly string[], datasetId: string) {
  const source = { kind: "project_logs", id: place.projectId } as const;
  const known = await copiedBefore(place.organization, source, ids, datasetId);
  const rows = await readRows(place, "id", ids.filter((id) => !known.has(id)), columns(...COPIED), true);
  await copyRows(place.organization, source, rows, datasetId);
  return { added: rows.length, known: known.size };
}
