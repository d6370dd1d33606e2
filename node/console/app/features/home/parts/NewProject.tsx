// The dialog that makes a project.
import { useState, type FormEvent } from "react";
import { problemOf } from "../../../lib/errors";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Field } from "../../../design/Field";
import { makeProject } from "../queries";

interface NewProjectProps {
  readonly organization: string;
  /** The names that are taken. */
  readonly taken: readonly string[];
  readonly onMade: (name: string) => void;
  readonly onClose: () => void;
}

export function NewProject({ organization, taken, onMade, onClose }: NewProjectProps) {
  const [name, setName] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const wanted = name.trim();
    if (isSending) return;
    if (wanted === "") return setFault("Enter a name first.");
    if (taken.includes(wanted)) return setFault("A project has this name already.");
    setSending(true);
    try {
      onMade(await makeProject(organization, wanted));
    } catch (error) {
      setFault(problemOf(error, 0).text);
      setSending(false);
    }
  };
  return (
    <Dialog title="New project" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Field
          label="Name"
          name="project"
          autoComplete="off"
          autoFocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          fault={fault}
          hint="Code that sends traces names the project like this."
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" aria-disabled={isSending}>
            Create
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
