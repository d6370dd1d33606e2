// Writes edits: first it looks for rows that somebody else changed meanwhile, then it inserts in one transaction.
import { chunksOf, insertRows, readRowsById, readTransactions } from "../../api/datasets";
import { ApiError, withoutTail } from "../../lib/errors";
import { conflictsOf, movedRows, type Conflict } from "./conflicts";
import { eventsOf, NO_EDITS, type Edits } from "./edits";
import type { DatasetPlace } from "./queries";

/** Rows of one insert; more edits are written in several. */
const CHUNK = 500;

/** The rows among the edits that are not as they were when they were edited. */
export async function findConflicts({ organization, id }: DatasetPlace, edits: Edits): Promise<readonly Conflict[]> {
  const ids = [...edits.rows].filter(([, row]) => row.base !== null).map(([row]) => row);
  if (ids.length === 0) return [];
  const moved = movedRows(edits, await readTransactions(organization, id, ids));
  return moved.length === 0 ? [] : conflictsOf(edits, moved, await readRowsById(organization, id, moved));
}

/** The part of the edits that concerns some rows. */
function partOf(edits: Edits, ids: readonly string[]): Edits {
  const wanted = new Set(ids);
  return {
    rows: new Map([...edits.rows].filter(([id]) => wanted.has(id))),
    added: edits.added.filter((id) => wanted.has(id)),
  };
}

/** A row that the server refused, which kept all of its insert from being written. */
export class RefusedRow extends Error {
  constructor(
    readonly row: string,
    message: string,
  ) {
    super(message);
    this.name = "RefusedRow";
  }
}

/** The index of the row that a refusal is about, and what is said of it; null if it is about something else. */
export function refusalOf(error: unknown): { readonly index: number; readonly message: string } | null {
  if (!(error instanceof ApiError) || error.status !== 400) return null;
  const found = /^row (\d+): ([^]+)$/.exec(withoutTail(error.message));
  return found === null ? null : { index: Number(found[1]), message: found[2] ?? "" };
}

const idOf = (event: Readonly<Record<string, unknown>>): string => (typeof event["id"] === "string" ? event["id"] : "");

/** Writes the edits, and tells after each insert which of them are written. */
export async function writeEdits(
  { organization, id }: DatasetPlace,
  edits: Edits,
  onWritten: (written: Edits) => void,
): Promise<void> {
  for (const chunk of chunksOf(eventsOf(edits), CHUNK)) {
    try {
      await insertRows(organization, id, chunk);
    } catch (error) {
      const refusal = refusalOf(error);
      const refused = refusal === null ? undefined : chunk[refusal.index];
      if (refusal === null || refused === undefined) throw error;
      throw new RefusedRow(idOf(refused), refusal.message);
    }
    onWritten(partOf(edits, chunk.map(idOf)));
  }
}

export const isEmpty = (edits: Edits): boolean => edits === NO_EDITS || edits.rows.size === 0;
