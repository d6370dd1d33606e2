// Dialogs that make, rename and delete a playground.
import { FormDialog } from "../../../design/FormDialog";
import { useState } from "react";
import { deletePlayground, makePlayground, renamePlayground, type Playground } from "../../../api/playground";
import { Field } from "../../../design/Field";
import { forgetPlaygrounds, type Place } from "../queries";

interface Named {
  readonly id: string;
  readonly name: string;
}

interface NewProps {
  readonly place: Place;
  /** The names that are taken. */
  readonly taken: readonly string[];
  readonly playground: Playground;
  readonly onMade: (id: string) => void;
  readonly onClose: () => void;
}

export function NewPlayground({ place, taken, playground, onMade, onClose }: NewProps) {
  const [name, setName] = useState("");
  const submit = async (): Promise<string | null> => {
    const wanted = name.trim();
    if (wanted === "") return "Enter a name first.";
    if (taken.includes(wanted)) return "A playground has this name already.";
    onMade((await makePlayground(place.organization, place.projectId, wanted, playground)).id);
    await forgetPlaygrounds(place);
    return null;
  };
  return (
    <FormDialog title="New playground" action="Create" onSubmit={submit} onClose={onClose}>
      <Field label="Name" value={name} autoComplete="off" autoFocus onChange={(event) => setName(event.currentTarget.value)} />
    </FormDialog>
  );
}

interface RecordProps {
  readonly place: Place;
  readonly playground: Named;
  readonly onClose: () => void;
}

export function RenamePlayground({ place, playground, onRenamed, onClose }: RecordProps & { readonly onRenamed: (name: string) => void }) {
  const [name, setName] = useState(playground.name);
  const submit = async (): Promise<string | null> => {
    if (name.trim() === "") return "Enter a name first.";
    onRenamed((await renamePlayground(place.organization, playground.id, name.trim())).name);
    await forgetPlaygrounds(place);
    return null;
  };
  return (
    <FormDialog title="Rename the playground" action="Rename" onSubmit={submit} onClose={onClose}>
      <Field label="Name" value={name} autoComplete="off" autoFocus onChange={(event) => setName(event.currentTarget.value)} />
    </FormDialog>
  );
}

export function DeletePlayground({ place, playground, onDeleted, onClose }: RecordProps & { readonly onDeleted: () => void }) {
  const submit = async (): Promise<null> => {
    await deletePlayground(place.organization, playground.id);
    onDeleted();
    await forgetPlaygrounds(place);
    return null;
  };
  return (
    <FormDialog title="Delete the playground?" action="Delete" onSubmit={submit} onClose={onClose}>
      <p>{playground.name} and its results are deleted. Experiments and prompts that were saved from it stay.</p>
    </FormDialog>
  );
}
