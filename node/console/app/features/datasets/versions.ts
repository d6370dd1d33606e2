// How versions of a dataset are called, and what is read of them.
import { queryOptions } from "@tanstack/react-query";
import { eachPage, readRows, readRowsById, type DatasetRow } from "../../api/datasets";
import { text, textOrNull } from "../../api/narrow";
import { called, ident, item, literal, runQuery, sourceOf } from "../../api/query";
import { previewRestore, type Snapshot } from "../../api/snapshots";
import { clock, day } from "../../lib/time";
import { momentOf, readVersion, sentVersion } from "../../lib/version";
import type { Zone } from "../../lib/preferences";
import { comparison } from "./comparing";
import type { DatasetPlace } from "./queries";

/** A version in words: the name of its snapshot, else its moment. */
export function versionName(version: string, snapshots: readonly Snapshot[], zone: Zone): string {
  if (version === "") return "now";
  const sent = sentVersion(readVersion(version));
  const snapshot = snapshots.find(({ transaction }) => transaction === sent);
  if (snapshot !== undefined) return `snapshot ${snapshot.name}`;
  const at = momentOf(sent);
  return at === null ? version : `${day(at, zone)} ${clock(at, zone).slice(0, 8)}`;
}

/** Whether a typed text is a version. */
export const isVersion = (typed: string): boolean => {
  const { kind } = readVersion(typed);
  return kind === "moment" || kind === "transaction";
};

/** The newest transaction of a dataset. */
export async function newestTransaction({ organization, id }: DatasetPlace): Promise<string> {
  return (await readRows(organization, id, { filter: [], version: "", limit: 1, preview: 1 })).transaction;
}

async function transactions({ organization, id }: DatasetPlace, version: string, signal: AbortSignal) {
  const found = new Map<string, string>();
  const sent = sentVersion(readVersion(version));
  await eachPage(organization, id, ["id", "_xact_id"], sent, (rows) => {
    for (const row of rows) found.set(text(row, "id"), textOrNull(row, "_xact_id") ?? "");
  }, signal);
  return found;
}

export const comparisonQuery = (place: DatasetPlace, before: string, after: string) =>
  queryOptions({
    queryKey: ["dataset-comparison", place.organization, place.id, before, after],
    queryFn: async ({ signal }) => {
      const [a, b] = await Promise.all([transactions(place, before, signal), transactions(place, after, signal)]);
      return comparison(a, b);
    },
  });

export interface Sides {
  readonly before: ReadonlyMap<string, DatasetRow>;
  readonly after: ReadonlyMap<string, DatasetRow>;
}

/** The whole rows of some ids at both versions. */
export const sidesQuery = (place: DatasetPlace, before: string, after: string, ids: readonly string[]) =>
  queryOptions({
    queryKey: ["dataset-sides", place.organization, place.id, before, after, ids],
    queryFn: async ({ signal }): Promise<Sides> => {
      const read = async (version: string) => {
        const rows = await readRowsById(place.organization, place.id, ids, sentVersion(readVersion(version)), signal);
        return new Map(rows.map((row) => [row.id, row]));
      };
      const [a, b] = await Promise.all([read(before), read(after)]);
      return { before: a, after: b };
    },
    placeholderData: (known) => known,
  });

export interface RecentChange {
  readonly transaction: string;
  readonly rows: number;
}

/** The last transactions that wrote rows which still are as they were written. */
export const recentQuery = (place: DatasetPlace) =>
  queryOptions({
    queryKey: ["dataset-recent", place.organization, place.id],
    queryFn: async ({ signal }): Promise<readonly RecentChange[]> => {
      const query = {
        dimensions: [item("transaction", ident("_xact_id"))],
        measures: [item("rows", called("count", literal(1)))],
        from: sourceOf("dataset", place.id),
        sort: [{ expr: ident("transaction"), dir: "desc" as const }],
        limit: 12,
      };
      return (await runQuery(place.organization, query, { signal })).rows.map((row) => {
        const rows = row["rows"];
        return { transaction: text(row, "transaction"), rows: typeof rows === "number" ? rows : 0 };
      });
    },
    staleTime: 0,
  });

export const restoreQuery = (place: DatasetPlace, version: string) =>
  queryOptions({
    queryKey: ["dataset-restore", place.organization, place.id, version],
    queryFn: ({ signal }) => previewRestore(place.organization, place.id, sentVersion(readVersion(version)), signal),
    staleTime: 0,
    gcTime: 0,
  });
