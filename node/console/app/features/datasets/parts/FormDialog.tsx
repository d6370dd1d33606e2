// A dialog with a form that says what failed.
import { useState, type FormEvent, type ReactNode } from "react";
import { problemOf } from "../../../api/errors";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import style from "./FormDialog.module.css";

interface FormDialogProps {
  readonly title: string;
  readonly action: string;
  readonly form?: "card" | "wide";
  /** Does what the dialog is for. What is wrong with the form is returned or thrown; null closes the dialog. */
  readonly onSubmit: () => Promise<string | null>;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function FormDialog({ title, action, form = "card", onSubmit, onClose, children }: FormDialogProps) {
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
      <form className={style["form"]} onSubmit={(event) => void submit(event)} noValidate>
        {children}
        <p className={style["fault"]} role="alert">
          {fault}
        </p>
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

interface AreaProps {
  readonly label: string;
  readonly hint?: string;
  readonly value: string;
  readonly rows: number;
  readonly isCode?: boolean;
  readonly onText: (text: string) => void;
}

/** A field of several lines. */
export function Area({ label, hint, value, rows, isCode = false, onText }: AreaProps) {
  return (
    <label className={style["area"]}>
      {label}
      <textarea
        className={isCode ? style["code"] : undefined}
        rows={rows}
        spellCheck={!isCode}
        value={value}
        onChange={(event) => onText(event.currentTarget.value)}
      />
      {hint !== undefined && <span className={style["hint"]}>{hint}</span>}
    </label>
  );
}
