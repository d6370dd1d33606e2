// Named queries. Each is a view of the organization: the server's record for what people save and share.
//
// Views have no kind for queries. These are of the type `logs`, which elsewhere belongs to projects and never to an
// organization, and hold the query under a key of the console's own.
import { queryOptions } from "@tanstack/react-query";
import { call } from "../../api/client";
import { keep } from "../../api/keeping";
import { keptIn } from "../../api/kept";
import { list, record, text, textOrNull, type Fields } from "../../api/narrow";
import { cache } from "../../api/queries";
import type { QueryPart } from "./tabs";
import { RESULT_TABS, SYNTAXES } from "./url";

const KEY = "console_query";
const VIEW_TYPE = "logs";

export interface Saved {
  readonly id: string;
  /** Whether it was named by a person, and not made for the address of a long query. */
  readonly isNamed: boolean;
  readonly part: QueryPart;
}

/** The organization that named queries belong to. */
export interface Owner {
  readonly id: string;
  readonly name: string;
}

function readSaved(value: unknown): Saved | null {
  const view = record(value, "view");
  const query = keptIn(view, KEY);
  if (query === null) return null;
  const id = text(view, "id");
  const part: QueryPart = {
    name: text(view, "name"),
    saved: id,
    text: textOrNull(query, "text") ?? "",
    link: "",
    syntax: SYNTAXES.find((one) => one === query["syntax"]) ?? "auto",
    chart: textOrNull(query, "chart") ?? "",
    version: textOrNull(query, "version") ?? "",
    tab: RESULT_TABS.find((one) => one === query["tab"]) ?? "table",
  };
  return { id, isNamed: query["unnamed"] !== true, part };
}

const objectOf = (owner: Owner): Fields => ({ object_type: "organization", object_id: owner.id });

const dataOf = ({ text: query, syntax, chart, version, tab }: QueryPart): Fields => ({
  custom_charts: { [KEY]: { text: query, syntax, chart, version, tab } },
});

const keyOf = (owner: Owner): readonly unknown[] => ["saved-queries", owner.id];

export const savedQuery = (owner: Owner) =>
  queryOptions({
    queryKey: keyOf(owner),
    queryFn: async ({ signal }) => {
      const path = `/v1/view?object_type=organization&object_id=${encodeURIComponent(owner.id)}&view_type=${VIEW_TYPE}&limit=1000`;
      const answer = record(await call("GET", path, { organization: owner.name, signal }), "views");
      return list(answer, "objects").map(readSaved).filter((saved) => saved !== null).filter((saved) => saved.isNamed);
    },
  });

const changed = (owner: Owner): Promise<void> => cache.invalidateQueries({ queryKey: keyOf(owner) });

/** Saves a query under a new name and returns the id that it got. */
export async function saveNew(owner: Owner, name: string, part: QueryPart): Promise<string> {
  const body = { ...objectOf(owner), view_type: VIEW_TYPE, name, view_data: dataOf(part) };
  const id = text(record(await call("POST", "/v1/view", { organization: owner.name, body }), "view"), "id");
  await changed(owner);
  return id;
}

const pathOf = (id: string): string => `/v1/view/${encodeURIComponent(id)}`;

/** Keeps a query that is too long for an address and returns the id of its record. */
export async function saveUnnamed(owner: Owner, part: QueryPart): Promise<string> {
  const query = { text: part.text, syntax: part.syntax, chart: part.chart, version: part.version, tab: part.tab };
  return keep({ organization: owner.name, type: "organization", id: owner.id }, KEY, "Query", query);
}

/** Reads a query that an address names by the id of its record; null if the record is of something else. */
export async function readOne(owner: Owner, id: string): Promise<QueryPart | null> {
  const path = `${pathOf(id)}?object_type=organization&object_id=${encodeURIComponent(owner.id)}`;
  const saved = readSaved(await call("GET", path, { organization: owner.name }));
  if (saved === null) return null;
  return saved.isNamed ? saved.part : { ...saved.part, name: "", saved: "", link: id };
}

/** Replaces the text of a saved query. */
export async function saveOver(owner: Owner, id: string, part: QueryPart): Promise<void> {
  await call("PATCH", pathOf(id), { organization: owner.name, body: { ...objectOf(owner), view_data: dataOf(part) } });
  await changed(owner);
}

export async function rename(owner: Owner, id: string, name: string): Promise<void> {
  await call("PATCH", pathOf(id), { organization: owner.name, body: { ...objectOf(owner), name } });
  await changed(owner);
}

export async function remove(owner: Owner, id: string): Promise<void> {
  await call("DELETE", pathOf(id), { organization: owner.name, body: objectOf(owner) });
  await changed(owner);
}
