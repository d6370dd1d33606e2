// The requests about one row: all of it, and what was written to it.
import { queryOptions } from "@tanstack/react-query";
import { readRowsById, type DatasetRow } from "../../api/datasets";
import { isRecord, text, textOrNull } from "../../api/narrow";
import { columns, compared, ident, literal, runQuery, sourceOf } from "../../api/query";
import { FIELDS, type Field } from "./cells";
import type { DatasetPlace } from "./queries";

/** A row with whole values at a version; null if there is none. `last` makes it be read again after changes. */
export const wholeRowQuery = ({ organization, id }: DatasetPlace, row: string, version: string, last: string) =>
  queryOptions({
    queryKey: ["dataset-row", organization, id, row, version, last],
    queryFn: async ({ signal }): Promise<DatasetRow | null> => {
      const [found] = await readRowsById(organization, id, [row], version, signal);
      return found ?? null;
    },
    placeholderData: (before) => (before?.id === row ? before : undefined),
  });

/** One write to a row. */
export interface RowChange {
  readonly transaction: string;
  readonly action: string;
  /** The fields that it wrote. */
  readonly fields: readonly Field[];
}

export const historyQuery = ({ organization, id }: DatasetPlace, row: string, last: string) =>
  queryOptions({
    queryKey: ["dataset-row-history", organization, id, row, last],
    queryFn: async ({ signal }): Promise<readonly RowChange[]> => {
      const query = {
        select: columns("id", "_xact_id", "audit_data", ...FIELDS),
        from: sourceOf("dataset", id),
        filter: [compared("eq", ident("id"), literal(row))],
        limit: 50,
        preview_length: 8,
      };
      const page = await runQuery(organization, query, { signal, auditLog: true });
      return page.rows.map((one) => {
        const audit = one["audit_data"];
        return {
          transaction: text(one, "_xact_id"),
          action: isRecord(audit) ? (textOrNull(audit, "action") ?? "") : "",
          fields: FIELDS.filter((field) => (one[field] ?? null) !== null),
        };
      });
    },
    placeholderData: (before) => before,
  });
