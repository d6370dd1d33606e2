// A dialog that asks for one text.
import { useState, type FormEvent } from "react";
import { problemOf } from "../../../lib/errors";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Field } from "../../../design/Field";

export interface NameDialogProps {
  readonly title: string;
  readonly label: string;
  readonly hint?: string;
  readonly start?: string;
  readonly action: string;
  /** What is wrong with a text, in a sentence; null if nothing is. */
  readonly check?: (text: string) => string | null;
  /** Does what the dialog is for. A failure is shown in the dialog. */
  readonly onDone: (text: string) => Promise<void>;
  readonly onClose: () => void;
}

export function NameDialog({ title, label, hint, start = "", action, check, onDone, onClose }: NameDialogProps) {
  const [text, setText] = useState(start);
  const [fault, setFault] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const wanted = text.trim();
    if (isSending) return;
    const wrong = wanted === "" ? "Enter something first." : (check?.(wanted) ?? null);
    if (wrong !== null) return setFault(wrong);
    setSending(true);
    try {
      await onDone(wanted);
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
          label={label}
          autoComplete="off"
          autoFocus
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          fault={fault}
          {...(hint === undefined ? {} : { hint })}
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
