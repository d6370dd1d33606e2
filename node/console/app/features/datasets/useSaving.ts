// Saves the edits, and asks first about rows that somebody else changed meanwhile.
import { useState } from "react";
import { problemOf } from "../../lib/errors";
import { toast } from "../../design/Toast";
import { useLatest } from "../../lib/commands";
import { exactCount } from "../../lib/numbers";
import { decided, type Conflict, type Side } from "./conflicts";
import { counted, type Edits } from "./edits";
import type { DatasetPlace } from "./queries";
import { findConflicts, isEmpty, RefusedRow, writeEdits } from "./saving";
import type { Sheet } from "./sheet";
import type { EditStore } from "./store";

const several = (count: number, one: string): string => (count === 1 ? `1 ${one}` : `${exactCount(count)} ${one}s`);

/** The edits in words: `3 cells and 2 new rows`. */
export function editWords(edits: Edits): string {
  const { cells, rows } = counted(edits);
  const parts = [cells === 0 ? "" : several(cells, "cell"), rows === 0 ? "" : several(rows, "new row")];
  return parts.filter((part) => part !== "").join(" and ");
}

interface Options {
  readonly place: DatasetPlace;
  readonly store: EditStore;
  readonly sheet: Sheet;
  readonly onSaved: () => Promise<void>;
}

export interface Saving {
  readonly isSaving: boolean;
  readonly conflicts: readonly Conflict[];
  readonly save: () => void;
  readonly decide: (sides: ReadonlyMap<string, Side>) => void;
  readonly dismiss: () => void;
}

export function useSaving({ place, store, sheet, onSaved }: Options): Saving {
  const [isSaving, setSaving] = useState(false);
  const [conflicts, setConflicts] = useState<readonly Conflict[]>([]);
  const write = async (edits: Edits): Promise<void> => {
    const words = editWords(edits);
    await writeEdits(place, edits, (written) => store.dispatch({ kind: "saved", edits: written }));
    toast(`Saved ${words}.`);
    await onSaved().catch(() => undefined);
  };
  const fail = (error: unknown): void => {
    if (!(error instanceof RefusedRow)) return toast(`Saving failed. ${problemOf(error, 0).text}`, true);
    toast(`Nothing of this part was saved: the server refused the row ${error.row}. ${error.message}.`, true);
    sheet.actions.focus({ row: error.row, column: "input" });
  };
  const run = async (work: () => Promise<void>): Promise<void> => {
    setSaving(true);
    try {
      await work();
    } catch (error) {
      fail(error);
    }
    setSaving(false);
  };
  const save = useLatest(() => {
    const edits = store.history.peek().present;
    if (isSaving || isEmpty(edits)) return;
    void run(async () => {
      const found = await findConflicts(place, edits);
      if (found.length > 0) return setConflicts(found);
      await write(edits);
    });
  });
  const decide = useLatest((sides: ReadonlyMap<string, Side>) => {
    const before = store.history.peek().present;
    const edits = decided(before, conflicts, sides);
    setConflicts([]);
    store.dispatch({ kind: "settle", edits });
    if (isEmpty(edits)) return void onSaved();
    void run(() => write(edits));
  });
  return { isSaving, conflicts, save, decide, dismiss: () => setConflicts([]) };
}
