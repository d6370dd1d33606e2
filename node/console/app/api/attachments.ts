// Finds where the bytes of an attachment are.
import { call } from "./client";
import { isRecord, record, text, textOrNull } from "./narrow";

export interface Attachment {
  /** The path from which the bytes are read. It is good for a quarter of an hour. */
  readonly path: string;
  /** `done` if the bytes are there. */
  readonly status: string;
}

/** The path of an address. Its origin is never used: bytes come from the server of the page or not at all. */
function pathOf(address: string): string {
  const url = new URL(address, window.location.origin);
  return url.pathname + url.search;
}

export async function readAttachment(
  organization: string,
  wanted: { readonly key: string; readonly name: string; readonly type: string },
  signal: AbortSignal,
): Promise<Attachment> {
  const parameters = new URLSearchParams({ key: wanted.key });
  if (wanted.name !== "") parameters.set("filename", wanted.name);
  if (wanted.type !== "") parameters.set("content_type", wanted.type);
  const answer = record(await call("GET", `/attachment?${parameters}`, { organization, signal }), "attachment");
  const status = answer["status"];
  return {
    path: pathOf(text(answer, "downloadUrl")),
    status: isRecord(status) ? (textOrNull(status, "upload_status") ?? "") : "",
  };
}
