// Copies rows of logs and experiments to datasets: what was answered is what is expected.
import type { SpanSource } from "../lib/trace";
import { call } from "./client";
import { chunksOf } from "./datasets";
import { isRecord, textOrNull, type Fields } from "./narrow";
import { compared, ident, item, literal, runQuery, sourceOf } from "./query";

/** The columns of a row that a copy needs. */
export const COPIED = ["id", "input", "output", "expected", "metadata", "tags", "_xact_id"] as const;

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || (Array.isArray(value) && value.length === 0);

/** A row as one of a dataset. It says where it came from. */
export function copyOf(source: SpanSource, row: Fields): Fields {
  const { id, input, output, expected, metadata, tags } = row;
  return {
    input: input ?? null,
    expected: expected ?? output ?? null,
    ...(isRecord(metadata) ? { metadata } : {}),
    ...(isEmpty(tags) ? {} : { tags }),
    origin: { object_type: source.kind, object_id: source.id, id, _xact_id: row["_xact_id"] },
  };
}

/** Which of some rows a dataset has been filled with before. */
export async function copiedBefore(
  organization: string,
  source: SpanSource,
  ids: readonly string[],
  datasetId: string,
): Promise<ReadonlySet<string>> {
  const known = new Set<string>();
  for (const chunk of chunksOf(ids)) {
    const page = await runQuery(organization, {
      dimensions: [item("id", ident("origin", "id"))],
      from: sourceOf("dataset", datasetId),
      filter: [
        compared("in", ident("origin", "id"), literal(chunk)),
        compared("eq", ident("origin", "object_id"), literal(source.id)),
      ],
      limit: chunk.length,
    });
    for (const row of page.rows) known.add(textOrNull(row, "id") ?? "");
  }
  return known;
}

/** Copies rows, which were read with their exact numbers. */
export async function copyRows(organization: string, source: SpanSource, rows: readonly Fields[], datasetId: string): Promise<void> {
  for (const chunk of chunksOf(rows)) {
    const body = { events: chunk.map((row) => copyOf(source, row)) };
    await call("POST", `/v1/dataset/${encodeURIComponent(datasetId)}/insert`, { organization, body, isExact: true });
  }
}
