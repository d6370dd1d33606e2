// Files of a dataset's rows, which the server writes.
import { call } from "../../api/client";
import { record, text } from "../../api/narrow";
import { columns, sourceOf } from "../../api/query";
import { filterOf, type DatasetPlace, type ListRequest } from "./queries";

export const EXPORT_KINDS = ["jsonl", "csv", "spreadsheet_csv", "parquet"] as const;

export type ExportKind = (typeof EXPORT_KINDS)[number];

const EXPORTED = ["id", "input", "expected", "metadata", "tags", "created", "origin"];

/** The name of a file without its ending, which the server adds: letters, digits and dashes of the dataset's name. */
export const fileName = (name: string): string =>
  name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "dataset";

/** The address of a file, which is good once and for a minute. */
export async function exportAddress(place: DatasetPlace, request: ListRequest, kind: ExportKind): Promise<string> {
  const query = {
    select: columns(...EXPORTED),
    from: sourceOf("dataset", place.id),
    filter: filterOf(request.filter),
  };
  const body = {
    query,
    fmt: kind,
    disable_limit: true,
    filename: fileName(place.name),
    ...(request.version === "" ? {} : { version: request.version }),
  };
  return text(record(await call("POST", "/console/download", { organization: place.organization, body }), "download"), "url");
}
