// Changes the expression whose values pair the rows of experiments. It belongs to the project.
import { useState, type FormEvent } from "react";
import { problemOf } from "../../../lib/errors";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Field } from "../../../design/Field";
import { toast } from "../../../design/Toast";
import { expressionFault, setKey } from "../queries";

interface KeyDialogProps {
  readonly organization: string;
  readonly project: { readonly id: string; readonly name: string };
  /** The expression that pairs rows at present. */
  readonly current: string;
  readonly onClose: () => void;
}

export function KeyDialog({ organization, project, current, onClose }: KeyDialogProps) {
  const [key, setText] = useState(current);
  const [fault, setFault] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (isSending) return;
    setSending(true);
    try {
      const wanted = key.trim();
      const wrong = wanted === "" ? null : await expressionFault(organization, wanted);
      if (wrong !== null) return setFault(wrong);
      await setKey(organization, project.id, wanted);
      toast(`Rows are paired by ${wanted === "" ? "input" : wanted}.`);
      onClose();
    } catch (error) {
      setFault(problemOf(error, 0).text);
    } finally {
      setSending(false);
    }
  };
  return (
    <Dialog title="Change what pairs rows" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Field
          label="Comparison key"
          autoComplete="off"
          autoFocus
          spellCheck={false}
          hint={`Rows with the same value are compared with each other, in all experiments of ${project.name}. The usual key is input.`}
          value={key}
          fault={fault}
          onChange={(event) => {
            setFault(null);
            setText(event.currentTarget.value);
          }}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" aria-disabled={isSending}>
            Save
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
