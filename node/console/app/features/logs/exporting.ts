// Files of what the list finds. The server writes them, except for the one that protects spreadsheets.
import { prepareDownload, runQuery, type ExportFormat } from "../../api/query";
import { csvOf } from "./csv";
import { exportOf } from "./laterRequests";
import { hasPages, type LogsRequest } from "./request";

export type ExportKind = ExportFormat | "spreadsheet";

/** How many rows the file for spreadsheets holds at most: it is made in the page. */
export const SPREADSHEET_ROWS = 50_000;

const PAGE = 1000;

function download(href: string, filename: string): void {
  const link = document.createElement("a");
  link.href = href;
  link.download = filename;
  link.click();
}

async function spreadsheet(organization: string, request: LogsRequest, filename: string): Promise<number> {
  const query = exportOf(request);
  const rows: (readonly unknown[])[] = [];
  let columns: readonly string[] = [];
  let cursor = "";
  do {
    const from = cursor === "" ? {} : { cursor };
    const page = await runQuery(organization, { ...query, limit: PAGE, ...from }, { version: request.version });
    columns = page.columns;
    rows.push(...page.rows.map((row) => page.columns.map((column) => row[column])));
    cursor = hasPages(request.sort) && page.rows.length === PAGE ? (page.cursor ?? "") : "";
  } while (cursor !== "" && rows.length < SPREADSHEET_ROWS);
  const address = URL.createObjectURL(new Blob([csvOf(columns, rows)], { type: "text/csv" }));
  download(address, filename);
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000);
  return rows.length;
}

/** Downloads all that the list finds. Returns how many rows the file holds, if the page knows. */
export async function exportRows(
  organization: string,
  request: LogsRequest,
  kind: ExportKind,
  name: string,
): Promise<number | null> {
  if (kind === "spreadsheet") return spreadsheet(organization, request, `${name}.csv`);
  const options = { fmt: kind, filename: name, version: request.version };
  download(await prepareDownload(organization, exportOf(request), options), `${name}.${kind}`);
  return null;
}

/** The name of a file of a project's rows: letters, digits and dashes. */
export const fileName = (project: string, shape: string): string =>
  `${project.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "logs"}-${shape}`;
