// The dialogs that save a version, restore one, and show what somebody else saved meanwhile.
import { FormDialog } from "../../../design/FormDialog";
import { useState } from "react";
import type { PromptRecord } from "../../../api/prompts";
import { Button } from "../../../design/Button";
import { Diff } from "../../../design/Diff";
import { Field } from "../../../design/Field";
import { versionText } from "../draft";
import type { Desk } from "../useDesk";
import { writeVersion } from "../useSaving";
import style from "./parts.module.css";
import { versionInWords } from "./Words";

interface DialogProps {
  readonly desk: Desk;
  readonly onClose: () => void;
}

/** Saves the edits. If somebody saved a version meanwhile, the dialog shows it and asks once more. */
export function SaveDialog({ desk, onClose }: DialogProps) {
  const { edits, newest } = desk;
  const [note, setNote] = useState("");
  const [theirs, setTheirs] = useState<PromptRecord | null>(desk.isStale ? newest : null);
  if (edits === null) return null;
  const base = theirs ?? edits.base;
  const submit = async (): Promise<string | null> => {
    const found = await writeVersion(desk, base, { data: edits.data }, note);
    if (found === null) return null;
    setTheirs(found);
    return "Somebody saved a version meanwhile. Nothing is saved yet.";
  };
  const takeTheirs = (): void => {
    desk.setEdits(null);
    onClose();
  };
  return (
    <FormDialog
      title={theirs === null ? "Save a version" : "Somebody else saved a version meanwhile"}
      action={theirs === null ? "Save" : "Save over it"}
      form="wide"
      ways={theirs !== null && <Button onClick={takeTheirs}>Discard my edits</Button>}
      onSubmit={submit}
      onClose={onClose}
    >
      {theirs !== null && <p>This is what your edits would change in the version of {versionInWords(theirs.version)}.</p>}
      <Field label="Note" autoComplete="off" autoFocus value={note} onChange={(event) => setNote(event.currentTarget.value)} hint="What changes and why, for the list of versions." />
      <div className={style["changes"]}>
        <Diff before={versionText(base)} after={versionText({ ...edits.base, metadata: base.metadata }, edits.data)} />
      </div>
    </FormDialog>
  );
}

/** Writes an older version again as the newest. */
export function RestoreDialog({ desk, record, onClose }: DialogProps & { readonly record: PromptRecord }) {
  const [note, setNote] = useState(`Restores the version of ${versionInWords(record.version)}`);
  const submit = async (): Promise<string | null> => {
    const found = await writeVersion(desk, desk.newest, { from: record }, note);
    return found === null ? null : "Somebody saved a version meanwhile. Close this dialog and look at it first.";
  };
  return (
    <FormDialog title="Restore as a new version?" action="Restore" form="wide" onSubmit={submit} onClose={onClose}>
      <p>The versions in between stay. This is what changes in the newest one.</p>
      <Field label="Note" autoComplete="off" value={note} onChange={(event) => setNote(event.currentTarget.value)} />
      <div className={style["changes"]}>
        <Diff before={versionText(desk.newest)} after={versionText(record)} />
      </div>
    </FormDialog>
  );
}
