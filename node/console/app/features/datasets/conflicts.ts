// Rows that somebody else changed between the first edit here and the save.
import type { DatasetRow } from "../../api/datasets";
import { FIELDS, isSame, type Field } from "./cells";
import type { Edits, EditedRow } from "./edits";

export interface Conflict {
  readonly id: string;
  readonly edit: EditedRow;
  /** The row as it is now; null if it was deleted. */
  readonly theirs: DatasetRow | null;
  /** The fields that either side changed. */
  readonly fields: readonly Field[];
}

/** The ids of the edited rows whose transaction is another than when they were read. */
export function movedRows(edits: Edits, present: ReadonlyMap<string, string>): readonly string[] {
  return [...edits.rows].flatMap(([id, { base }]) =>
    base !== null && present.get(id) !== base.transaction ? [id] : [],
  );
}

/** The conflicts of moved rows, given how these are now. */
export function conflictsOf(edits: Edits, ids: readonly string[], present: readonly DatasetRow[]): readonly Conflict[] {
  const now = new Map(present.map((row) => [row.id, row]));
  return ids.flatMap((id): readonly Conflict[] => {
    const edit = edits.rows.get(id);
    if (edit === undefined || edit.base === null) return [];
    const theirs = now.get(id) ?? null;
    const { base } = edit;
    const fields = FIELDS.filter(
      (field) => field in edit.values || (theirs !== null && !isSame(theirs[field], base[field])),
    );
    return [{ id, edit, theirs, fields }];
  });
}

export type Side = "mine" | "theirs";

/**
 * The edits after each conflict was decided. Mine of a deleted row makes it anew, with everything that it had.
 */
export function decided(edits: Edits, conflicts: readonly Conflict[], sides: ReadonlyMap<string, Side>): Edits {
  const rows = new Map(edits.rows);
  const added = [...edits.added];
  for (const { id, edit, theirs } of conflicts) {
    if (sides.get(id) !== "mine") rows.delete(id);
    else if (theirs !== null) rows.set(id, { ...edit, base: theirs });
    else if (edit.base !== null) {
      const { input, expected, metadata, tags } = edit.base;
      rows.set(id, { base: null, values: { input, expected, metadata, tags, ...edit.values } });
      added.push(id);
    }
  }
  return { rows, added };
}
