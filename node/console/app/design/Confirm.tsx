// A dialog that asks before something is done that is not easily undone.
import { useState, type ReactNode } from "react";
import { Button } from "./Button";
import { Dialog, DialogActions } from "./Dialog";
import dialog from "./Dialog.module.css";
import style from "./Field.module.css";

interface ConfirmProps {
  readonly title: string;
  /** What will happen, in whole sentences. */
  readonly children: ReactNode;
  /** The words of the button that does it. */
  readonly action: string;
  /** Does it, and returns what went wrong in a sentence, or null. */
  readonly onConfirm: () => Promise<string | null>;
  readonly onClose: () => void;
}

export function Confirm({ title, children, action, onConfirm, onClose }: ConfirmProps) {
  const [fault, setFault] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const confirm = async (): Promise<void> => {
    if (isSending) return;
    setSending(true);
    const failure = await onConfirm();
    setSending(false);
    if (failure === null) onClose();
    else setFault(failure);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <div className={dialog["words"]}>{children}</div>
      <p className={style["fault"]} role="alert">
        {fault}
      </p>
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="primary" aria-disabled={isSending} onClick={() => void confirm()}>
          {action}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
