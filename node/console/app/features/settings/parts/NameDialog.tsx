// The dialog that makes a group or a role, or changes its name and description.
import { useState, type FormEvent } from "react";
import { problemOf } from "../../../lib/errors";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Field } from "../../../design/Field";

interface NameDialogProps {
  readonly title: string;
  readonly action: string;
  readonly name?: string;
  readonly description?: string;
  /** The names of the others. */
  readonly taken: readonly string[];
  readonly onSave: (name: string, description: string) => Promise<void>;
  readonly onClose: () => void;
}

export function NameDialog({ title, action, taken, onSave, onClose, ...before }: NameDialogProps) {
  const [name, setName] = useState(before.name ?? "");
  const [description, setDescription] = useState(before.description ?? "");
  const [fault, setFault] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const wanted = name.trim();
    if (isSending) return;
    if (wanted === "") return setFault("Enter a name first.");
    if (taken.includes(wanted)) return setFault("This name is taken already.");
    setSending(true);
    try {
      await onSave(wanted, description.trim());
    } catch (error) {
      setFault(problemOf(error, 0).text);
      setSending(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Field label="Name" autoComplete="off" autoFocus value={name} onChange={(event) => setName(event.currentTarget.value)} fault={fault} />
        <Field label="Description" autoComplete="off" value={description} onChange={(event) => setDescription(event.currentTarget.value)} />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" aria-disabled={isSending}>
            {action}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
