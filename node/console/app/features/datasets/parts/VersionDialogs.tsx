// The dialogs that name a version and that restore one.
import { FormDialog } from "../../../design/FormDialog";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { changeSnapshot, makeSnapshot, restoreDataset, type Snapshot } from "../../../api/snapshots";
import { askToSignIn } from "../../../api/gate";
import { cache, readingOf } from "../../../api/queries";
import { Field } from "../../../design/Field";
import { Loaded } from "../../../design/Loaded";
import { toast } from "../../../design/Toast";
import { preferences } from "../../../lib/preferences";
import { readVersion, sentVersion } from "../../../lib/version";
import { rowsKey, snapshotsQuery } from "../queries";
import type { Desk } from "../useDesk";
import { newestTransaction, restoreQuery, versionName } from "../versions";
import { Area } from "./Area";
import { rowWords } from "./SelectionBar";

interface SnapshotDialogProps {
  readonly desk: Desk;
  /** The snapshot to change; null to make one of the shown version. */
  readonly snapshot: Snapshot | null;
  readonly onClose: () => void;
}

/** Makes the snapshot. What is wrong is returned. */
async function create({ place, state }: Desk, name: string, description: string): Promise<string | null> {
  const version = state.version === "" ? await newestTransaction(place) : sentVersion(readVersion(state.version));
  const made = await makeSnapshot(place.organization, place.id, name, description, version);
  return made.transaction === version ? null : "A snapshot of another version has this name already.";
}

export function SnapshotDialog({ desk, snapshot, onClose }: SnapshotDialogProps) {
  const { place, state, store } = desk;
  const [name, setName] = useState(snapshot?.name ?? "");
  const [description, setDescription] = useState(snapshot?.description ?? "");
  const hasEdits = state.version === "" && store.history.value.present.rows.size > 0;
  const submit = async (): Promise<string | null> => {
    if (name.trim() === "") return "Enter a name first.";
    const change = { name: name.trim(), description: description.trim() };
    if (snapshot !== null) await changeSnapshot(place.organization, snapshot.id, change);
    const fault = snapshot === null ? await create(desk, change.name, change.description) : null;
    if (fault !== null) return fault;
    await cache.invalidateQueries({ queryKey: snapshotsQuery(place.organization, place.id).queryKey });
    await cache.invalidateQueries({ queryKey: ["dataset-snapshot-counts", place.organization] });
    toast(`The snapshot ${change.name} is saved.`);
    return null;
  };
  return (
    <FormDialog
      title={snapshot === null ? "New snapshot" : `Snapshot ${snapshot.name}`}
      action={snapshot === null ? "Create" : "Save"}
      onClose={onClose}
      onSubmit={submit}
    >
      {hasEdits && <p>Edits that are not saved are not part of the snapshot.</p>}
      <Field label="Name" autoComplete="off" autoFocus value={name} onChange={(event) => setName(event.currentTarget.value)} />
      <Area label="Description" rows={3} value={description} onText={setDescription} />
    </FormDialog>
  );
}

export function RestoreDialog({ desk, onClose }: { readonly desk: Desk; readonly onClose: () => void }) {
  const { place, state, change } = desk;
  const query = useQuery(restoreQuery(place, state.version));
  const snapshots = useQuery(snapshotsQuery(place.organization, place.id)).data ?? [];
  const name = versionName(state.version, snapshots, preferences.value.zone);
  const counts = query.data;
  const isNothing = counts !== undefined && counts.restored === 0 && counts.deleted === 0;
  const submit = async (): Promise<string | null> => {
    if (counts === undefined) return "The preview has to be there first.";
    if (isNothing) return null;
    const done = await restoreDataset(place.organization, place.id, sentVersion(readVersion(state.version)));
    cache.removeQueries({ queryKey: rowsKey(place, { filter: state.filter, version: "" }) });
    toast(`The dataset is as it was: ${rowWords(done.restored)} restored, ${rowWords(done.deleted)} deleted.`);
    change({ version: "" });
    return null;
  };
  return (
    <FormDialog title={`Restore to ${name}?`} action={isNothing ? "Close" : "Restore"} onClose={onClose} onSubmit={submit}>
      <Loaded reading={readingOf(query)} skeleton={<p>Counting what would change</p>} onSignIn={() => void askToSignIn()}>
        {({ restored, deleted }) =>
          isNothing ? (
            <p>The dataset is as it was then. There is nothing to restore.</p>
          ) : (
            <>
              <p>
                <strong>{rowWords(restored + deleted)} will change</strong>: {rowWords(restored)} will be written as
                {restored === 1 ? " it was" : " they were"}, and {rowWords(deleted)} that came later will be deleted.
              </p>
              <p>This is one new version. The versions before it stay.</p>
            </>
          )
        }
      </Loaded>
    </FormDialog>
  );
}
