// Asks for the moment or the transaction as of which the comparison is shown.
import { useState, type FormEvent } from "react";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Field } from "../../../design/Field";
import { readVersion } from "../../../lib/version";

interface VersionDialogProps {
  readonly version: string;
  readonly onVersion: (version: string) => void;
  readonly onClose: () => void;
}

export function VersionDialog({ version, onVersion, onClose }: VersionDialogProps) {
  const [text, setText] = useState(version);
  const [fault, setFault] = useState<string | null>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const wanted = text.trim();
    if (readVersion(wanted).kind === "unknown") {
      setFault("Enter a moment such as 2026-05-04T10:00Z, or a transaction id.");
      return;
    }
    onClose();
    onVersion(wanted);
  };
  return (
    <Dialog title="Show an earlier state" onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <Field
          label="Moment or transaction"
          autoComplete="off"
          autoFocus
          placeholder="2026-05-04T10:00Z"
          hint="All experiments are shown as their rows were then. An empty field means now."
          value={text}
          fault={fault}
          onChange={(event) => {
            setFault(null);
            setText(event.currentTarget.value);
          }}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary">
            Show
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
