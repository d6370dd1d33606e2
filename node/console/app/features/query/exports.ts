// Exports of a query: a file that the server streams, or a long query that the server runs by itself.
import { call } from "../../api/client";
import { list, record, text, textOrNull } from "../../api/narrow";
import type { ExportFormat } from "../../api/query";
import { bodyOf, type RunRequest } from "./queries";

export const FORMAT_TITLES: Readonly<Record<ExportFormat, string>> = {
  jsonl: "JSON Lines",
  csv: "CSV",
  parquet: "Parquet",
  json: "JSON",
};

/** The name of a file without its ending: from a title and the moment. */
export function fileName(title: string, at: Date): string {
  const words = title
    .normalize("NFKD")
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 40)
    .replace(/-+$/, "");
  const moment = at.toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  return `${words === "" ? "query" : words.toLowerCase()}-${moment}`;
}

/** Prepares a file with all rows of a query, and returns its address, which is good once. The server adds the ending. */
export async function prepareFile(
  organization: string,
  request: RunRequest,
  fmt: ExportFormat,
  filename: string,
): Promise<string> {
  const body = { ...bodyOf(request), fmt, disable_limit: true, filename };
  return text(record(await call("POST", "/console/download", { organization, body }), "download"), "url");
}

/** Follows an address that the server answers with a file. The page stays. */
export function followDownload(url: string, filename: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = filename;
  document.body.append(link);
  link.click();
  link.remove();
}

const POLL_MS = 1000;
const PAGE_ROWS = 1000;

/** A browser holds the file until it is saved, so that larger ones are refused. */
const MOST_BYTES = 200_000_000;

const rest = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = window.setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      window.clearTimeout(timer);
      reject(new DOMException("The export was stopped.", "AbortError"));
    });
  });

async function waitFor(organization: string, path: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const state = record(await call("GET", path, { organization, signal }), "asynchronous query");
    const status = text(state, "status");
    if (status === "succeeded") return;
    if (status === "failed" || status === "canceled") {
      throw new Error(textOrNull(state, "error") ?? `The server ended the query: ${status}.`);
    }
    await rest(POLL_MS, signal);
  }
}

/** Runs a query that may take long, and returns its rows as lines of JSON. `onRows` is told how many are there. */
export async function runLong(
  organization: string,
  request: RunRequest,
  onRows: (count: number) => void,
  signal: AbortSignal,
): Promise<Blob> {
  const body = { ...bodyOf(request), format: "jsonl", disable_limit: true };
  const started = record(await call("POST", "/btql/async", { organization, body, signal }), "asynchronous query");
  const path = `/btql/async/${encodeURIComponent(text(started, "id"))}`;
  await waitFor(organization, path, signal);
  const parts: string[] = [];
  let [rows, size] = [0, 0];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query = `limit=${PAGE_ROWS}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
    const page = record(await call("GET", `${path}/result?${query}`, { organization, signal }), "page");
    const lines = list(page, "rows").map((row) => `${JSON.stringify(row)}\n`);
    const joined = lines.join("");
    parts.push(joined);
    rows += lines.length;
    size += joined.length;
    onRows(rows);
    if (size > MOST_BYTES) throw new Error("The result is over 200 MB. Export it as a file instead.");
    cursor = textOrNull(page, "cursor");
  }
  return new Blob(parts, { type: "application/x-ndjson" });
}

/** Saves bytes of the page as a file. */
export function saveBlob(blob: Blob, filename: string): void {
  const url = URL.createObjectURL(blob);
  followDownload(url, filename);
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
