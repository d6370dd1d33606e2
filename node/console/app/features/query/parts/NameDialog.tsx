// The dialog that asks for a name, and keeps open while the server refuses it.
import { useState, type FormEvent } from "react";
import { problemOf } from "../../../lib/errors";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Field } from "../../../design/Field";

interface NameDialogProps {
  readonly title: string;
  readonly action: string;
  readonly name: string;
  readonly hint: string;
  readonly taken: readonly string[];
  readonly onName: (name: string) => Promise<void>;
  readonly onClose: () => void;
}

export function NameDialog({ title, action, name: before, hint, taken, onName, onClose }: NameDialogProps) {
  const [name, setName] = useState(before);
  const [fault, setFault] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const wanted = name.trim();
    if (isSending) return;
    if (wanted === "") return setFault("Enter a name first.");
    if (wanted !== before && taken.includes(wanted)) return setFault("Another saved query has this name.");
    setSending(true);
    try {
      await onName(wanted);
      onClose();
    } catch (error) {
      setFault(problemOf(error, 0).text);
      setSending(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Field
          label="Name"
          name="query"
          autoComplete="off"
          autoFocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          fault={fault}
          hint={hint}
        />
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
