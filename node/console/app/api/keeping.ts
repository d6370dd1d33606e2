// Writes and reads the unnamed views that keep texts too long for an address.
import { KEPT } from "../lib/address";
import { call } from "./client";
import { KEPT_FILTER, keptIn } from "./kept";
import { list, record, text, textOrNull, type Fields } from "./narrow";
import { cache } from "./queries";

/** What the views belong to. */
export interface Keeper {
  readonly organization: string;
  readonly type: "organization" | "project";
  readonly id: string;
}

const VIEW_TYPE = "logs";
/** How long a link lives at least whose text a view keeps. */
const KEPT_MS = 30 * 86_400_000;
/** How many old views are deleted when a new one is written. */
const DELETED_MAX = 20;

const objectOf = ({ type, id }: Keeper): Fields => ({ object_type: type, object_id: id });

const queryOf = ({ type, id }: Keeper): string => `object_type=${type}&object_id=${encodeURIComponent(id)}`;

/** The ids of the unnamed views of a person that were made before a moment, the oldest first. */
export function oldViews(views: readonly unknown[], key: string, userId: string, before: number): readonly string[] {
  return views
    .map((value) => record(value, "view"))
    .filter((view) => textOrNull(view, "user_id") === userId && keptIn(view, key)?.["unnamed"] === true)
    .map((view) => ({ id: text(view, "id"), made: Date.parse(textOrNull(view, "created") ?? "") }))
    .filter(({ made }) => made < before)
    .sort((a, b) => a.made - b.made)
    .slice(0, DELETED_MAX)
    .map(({ id }) => id);
}

/** Deletes what a person kept under a key too long ago. */
async function deleteOld(keeper: Keeper, key: string, userId: string): Promise<void> {
  const { organization } = keeper;
  const path = `/v1/view?${queryOf(keeper)}&view_type=${VIEW_TYPE}&limit=1000`;
  const views = list(record(await call("GET", path, { organization }), "views"), "objects");
  for (const id of oldViews(views, key, userId, Date.now() - KEPT_MS)) {
    await call("DELETE", `/v1/view/${encodeURIComponent(id)}`, { organization, body: objectOf(keeper) });
  }
}

/** Keeps something without a name and returns the id of its view. */
export async function keep(keeper: Keeper, key: string, title: string, kept: Fields): Promise<string> {
  const body = {
    ...objectOf(keeper),
    view_type: VIEW_TYPE,
    name: `${title} of ${new Date().toISOString()}`,
    view_data: { custom_charts: { [key]: { ...kept, unnamed: true } } },
  };
  const made = record(await call("POST", "/v1/view", { organization: keeper.organization, body }), "view");
  // What is not deleted now is deleted with the next one.
  void deleteOld(keeper, key, textOrNull(made, "user_id") ?? "").catch(() => undefined);
  return text(made, "id");
}

/** Reads what a view keeps; null if it keeps nothing under the key. */
export async function readKept(keeper: Keeper, key: string, id: string, signal: AbortSignal): Promise<Fields | null> {
  const path = `/v1/view/${encodeURIComponent(id)}?${queryOf(keeper)}`;
  return keptIn(record(await call("GET", path, { organization: keeper.organization, signal }), "view"), key);
}

const keeperOf = (organization: string, projectId: string): Keeper => ({ organization, type: "project", id: projectId });

/** The key under which the cache has the filter that a view of an address stands for. */
export const filterKey = (organization: string, projectId: string, view: string) =>
  ["kept filter", organization, projectId, view] as const;

/** Reads the filter that a view of an address stands for. */
export async function readFilter(organization: string, projectId: string, view: string, signal: AbortSignal): Promise<string> {
  const kept = await readKept(keeperOf(organization, projectId), KEPT_FILTER, view.slice(KEPT.length), signal);
  if (kept === null) throw new Error("The record of this link has no filter.");
  return text(kept, "text");
}

/** Keeps a filter and returns what the address names it by. */
export async function keepFilter(organization: string, projectId: string, filter: string): Promise<string> {
  const view = `${KEPT}${await keep(keeperOf(organization, projectId), KEPT_FILTER, "Filter", { text: filter })}`;
  cache.setQueryData(filterKey(organization, projectId, view), filter);
  return view;
}
