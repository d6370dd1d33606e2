// The audit log of an organization, as its owner reads it.
import type { Api } from "./api";
import { at, textAt } from "./json";

async function sourceOf(api: Api): Promise<string> {
  return `org_audit_logs('${textAt(await api.call("GET", "/v1/organization"), "objects", 0, "id")}')`;
}

/** The number of the newest entry; 0 if there is none. */
export async function lastSequence(api: Api): Promise<number> {
  const [row] = await api.query(`SELECT max(sequence) AS last FROM ${await sourceOf(api)}`);
  return Number(at(row, "last") ?? 0);
}

/** The first thousand entries after one of them, the oldest first. */
export const entriesAfter = async (api: Api, sequence: number): Promise<readonly unknown[]> =>
  api.query(`SELECT * FROM ${await sourceOf(api)} WHERE sequence > ${sequence} ORDER BY sequence LIMIT 1000`);
