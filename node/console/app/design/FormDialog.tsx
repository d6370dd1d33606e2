// A dialog with a form that says what failed.
import { useState, type FormEvent, type ReactNode } from "react";
import { problemOf } from "../lib/errors";
import { Button } from "./Button";
import { Dialog, DialogActions } from "./Dialog";
import style from "./FormDialog.module.css";

interface FormDialogProps {
  readonly title: string;
  /** The word of the main button. */
  readonly action: string;
  readonly form?: "card" | "wide";
  /** Further buttons, before the main one. */
  readonly ways?: ReactNode;
  /** Does what the dialog is for. What is wrong with the form is returned or thrown; null closes the dialog. */
  readonly onSubmit: () => Promise<string | null> | string | null;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function FormDialog({ title, action, form = "card", ways, onSubmit, onClose, children }: FormDialogProps) {
  const [fault, setFault] = useState("");
  const [isSending, setSending] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (isSending) return;
    setSending(true);
    setFault("");
    try {
      const wrong = await onSubmit();
      if (wrong === null) return onClose();
      setFault(wrong);
    } catch (error) {
      setFault(problemOf(error, 0).text);
    }
    setSending(false);
  };
  return (
    <Dialog title={title} form={form} onClose={onClose}>
      <form className={style["form"]} onSubmit={(event) => void submit(event)} noValidate autoComplete="off">
        {children}
        <p className={style["fault"]} role="alert">
          {fault}
        </p>
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          {ways}
          <Button type="submit" look="primary" aria-disabled={isSending}>
            {action}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
