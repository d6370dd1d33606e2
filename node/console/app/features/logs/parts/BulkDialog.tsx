// What is asked before something is done with many rows.
import { useState } from "react";
import type { Acting } from "../acting";
import { AssignDialog, DatasetDialog } from "./BulkDialogs";
import type { BulkAction } from "./chosen";
import { NameDialog } from "./NameDialog";
import { ScoreDialog } from "./ScoreDialog";

export interface BulkDialogProps {
  readonly action: BulkAction;
  readonly acting: Acting;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** The dialog that deletes, once the number of rows was typed. */
function DeleteDialog({ acting, onClose, onDone }: Omit<BulkDialogProps, "action">) {
  const { words, count, isTraces } = acting;
  return (
    <NameDialog
      title={`Delete ${words}?`}
      label={`Type ${count} to delete them`}
      hint={`${isTraces ? "All spans of the traces are deleted. " : ""}You can take it back for 10 seconds.`}
      action="Delete"
      check={(typed) => (typed.replaceAll(",", "") === String(count) ? null : `Type ${count}, the number of rows.`)}
      onDone={async () => {
        acting.remove();
        onDone();
      }}
      onClose={onClose}
    />
  );
}

export function BulkDialog({ action, acting, onClose, onDone }: BulkDialogProps) {
  const [kept] = useState(acting);
  const dialog = { acting: kept, onClose, onDone };
  switch (action) {
    case "none":
      return null;
    case "tag":
      return (
        <NameDialog
          title={`Tag ${kept.words}`}
          label="Tag"
          action="Add the tag"
          onDone={async (name) => {
            await kept.tag(name);
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
      return <DeleteDialog {...dialog} />;
  }
}
