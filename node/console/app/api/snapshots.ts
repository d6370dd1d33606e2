// Calls about versions of datasets: snapshots, which name them, and restores.
import { call } from "./client";
import { list, record, text, textOrNull, type Fields } from "./narrow";

export interface Snapshot {
  readonly id: string;
  readonly datasetId: string;
  readonly name: string;
  readonly description: string;
  readonly transaction: string;
  readonly created: string;
}

function readSnapshot(value: unknown): Snapshot {
  const snapshot = record(value, "snapshot");
  return {
    id: text(snapshot, "id"),
    datasetId: text(snapshot, "dataset_id"),
    name: text(snapshot, "name"),
    description: textOrNull(snapshot, "description") ?? "",
    transaction: text(snapshot, "xact_id"),
    created: text(snapshot, "created"),
  };
}

export async function readSnapshots(organization: string, datasetId: string, signal: AbortSignal) {
  const answer = await call("GET", `/v1/dataset_snapshot?dataset_id=${datasetId}`, { organization, signal });
  return list(record(answer, "snapshots"), "objects").map(readSnapshot);
}

/** Names a version. If the name is taken, the server gives the snapshot that has it. */
export async function makeSnapshot(organization: string, datasetId: string, name: string, description: string, transaction: string) {
  const body = { dataset_id: datasetId, name, description, xact_id: transaction };
  return readSnapshot(await call("POST", "/v1/dataset_snapshot", { organization, body }));
}

export async function changeSnapshot(organization: string, id: string, change: { readonly name: string; readonly description: string }) {
  return readSnapshot(await call("PATCH", `/v1/dataset_snapshot/${id}`, { organization, body: { ...change } }));
}

export async function deleteSnapshot(organization: string, id: string): Promise<void> {
  await call("DELETE", `/v1/dataset_snapshot/${id}`, { organization });
}

export interface RestoreCounts {
  readonly restored: number;
  readonly deleted: number;
}

const countOf = (fields: Fields, key: string): number => {
  const value = fields[key];
  return typeof value === "number" ? value : 0;
};

/** Counts what a restore to a version would do. */
export async function previewRestore(organization: string, id: string, version: string, signal: AbortSignal): Promise<RestoreCounts> {
  const answer = record(await call("POST", `/v1/dataset/${id}/restore/preview`, { organization, body: { version }, signal }), "preview");
  return { restored: countOf(answer, "rows_to_restore"), deleted: countOf(answer, "rows_to_delete") };
}

export async function restoreDataset(organization: string, id: string, version: string): Promise<RestoreCounts> {
  const answer = record(await call("POST", `/v1/dataset/${id}/restore`, { organization, body: { version } }), "restore");
  return { restored: countOf(answer, "rows_restored"), deleted: countOf(answer, "rows_deleted") };
}

/** Counts the snapshots of each dataset that the person may see. */
export async function countSnapshots(organization: string, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  const path = `/v1/dataset_snapshot?org_name=${encodeURIComponent(organization)}`;
  for (const value of list(record(await call("GET", path, { organization, signal }), "snapshots"), "objects")) {
    const { datasetId } = readSnapshot(value);
    counts.set(datasetId, (counts.get(datasetId) ?? 0) + 1);
  }
  return counts;
}
