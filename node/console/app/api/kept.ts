// Texts that are too long for an address. Each is kept in an unnamed view, whose id stands in the address.
import { call } from "./client";
import { isRecord, record, text, type Fields } from "./narrow";

/** What the views belong to. */
export interface Keeper {
  readonly organization: string;
  readonly type: "organization" | "project";
  readonly id: string;
}

const VIEW_TYPE = "logs";

/** What a view holds under a key of the console's own; null if it holds nothing there. */
export function keptIn(view: Fields, key: string): Fields | null {
  const data = view["view_data"];
  const charts = isRecord(data) ? data["custom_charts"] : null;
  const kept = isRecord(charts) ? charts[key] : null;
  return isRecord(kept) ? kept : null;
}

/** Keeps something without a name and returns the id of its view. */
export async function keep(keeper: Keeper, key: string, title: string, kept: Fields): Promise<string> {
  const body = {
    object_type: keeper.type,
    object_id: keeper.id,
    view_type: VIEW_TYPE,
    name: `${title} of ${new Date().toISOString()}`,
    view_data: { custom_charts: { [key]: { ...kept, unnamed: true } } },
  };
  return text(record(await call("POST", "/v1/view", { organization: keeper.organization, body }), "view"), "id");
}

/** Reads what a view keeps; null if it keeps nothing under the key. */
export async function readKept(keeper: Keeper, key: string, id: string, signal: AbortSignal): Promise<Fields | null> {
  const object = `object_type=${keeper.type}&object_id=${encodeURIComponent(keeper.id)}`;
  const path = `/v1/view/${encodeURIComponent(id)}?${object}`;
  return keptIn(record(await call("GET", path, { organization: keeper.organization, signal }), "view"), key);
}
