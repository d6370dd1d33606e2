// What is asked before something is done with many rows.
import { useState } from "react";
import { problemOf } from "../../../api/errors";
import { toast } from "../../../design/Toast";
import { addTag, refreshLists, type Place } from "../bulk";
import { deleteLater } from "../deletions";
import { AssignDialog, DatasetDialog } from "./BulkDialogs";
import { countWords, type BulkAction, type Chosen } from "./chosen";
import { NameDialog } from "./NameDialog";
import { ScoreDialog } from "./ScoreDialog";

export interface BulkDialogProps {
  readonly action: BulkAction;
  readonly chosen: Chosen;
  readonly place: Place;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

const failed = (error: unknown): void => toast(`Taking it back failed. ${problemOf(error, 0).text}`, true);

async function tag(place: Place, ids: readonly string[], name: string): Promise<void> {
  const { count, undo } = await addTag(place, ids, name);
  await refreshLists(place.organization);
  if (count === 0) return toast(`All of them have the tag ${name} already.`);
  toast(`The tag ${name} was added to ${count === 1 ? "1 row" : `${count} rows`}.`, false, {
    title: "Undo",
    run: () => void undo().then(() => refreshLists(place.organization), failed),
  });
}

/** The dialog of an action. Rows whose root never came cannot be changed, so that they are left out. */
export function BulkDialog({ action, chosen, place, onClose, onDone }: BulkDialogProps) {
  const [kept] = useState(chosen);
  const ids = kept.rows.map((row) => row.id).filter((id) => id !== "");
  const words = countWords(kept.keys.length, kept.shape);
  const dialog = { ids, words, place, onClose, onDone };
  switch (action) {
    case "none":
      return null;
    case "tag":
      return (
        <NameDialog
          title={`Tag ${words}`}
          label="Tag"
          action="Add the tag"
          onDone={async (name) => {
            await tag(place, ids, name);
            onDone();
          }}
          onClose={onClose}
        />
      );
    case "score":
      return <ScoreDialog {...dialog} />;
    case "assign":
      return <AssignDialog {...dialog} />;
    case "dataset":
      return <DatasetDialog {...dialog} />;
    case "delete":
      return (
        <NameDialog
          title={`Delete ${words}?`}
          label={`Type ${kept.keys.length} to delete them`}
          hint={
            kept.shape === "traces"
              ? "All spans of the traces are deleted. You can take it back for 10 seconds."
              : "You can take it back for 10 seconds."
          }
          action="Delete"
          check={(typed) => (typed === String(kept.keys.length) ? null : `Type ${kept.keys.length}, the number of rows.`)}
          onDone={async () => {
            deleteLater(place, kept.keys, kept.shape === "traces", words);
            onDone();
          }}
          onClose={onClose}
        />
      );
  }
}
