// The dialogs of budgets and retention: a form that says what failed, choices, and a question before something is deleted.
import { FormDialog } from "../../../design/FormDialog";
import { useId, type ReactNode } from "react";
import style from "../section.module.css";

interface CheckedDialogProps {
  readonly title: string;
  readonly action: string;
  readonly onClose: () => void;
  /** Looks at what was entered, says what is wrong with it, and tells whether nothing is. */
  readonly isReady?: () => boolean;
  readonly onSubmit: () => Promise<void>;
  readonly children: ReactNode;
}

/** A dialog with a form whose fields say what is wrong with them. */
export function CheckedDialog({ isReady, onSubmit, ...dialog }: CheckedDialogProps) {
  const submit = async (): Promise<string | null> => {
    if (isReady?.() === false) return "";
    await onSubmit();
    return null;
  };
  return <FormDialog {...dialog} onSubmit={submit} />;
}

export interface Choice {
  readonly id: string;
  readonly name: string;
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly Choice[];
  readonly onChoose: (id: string) => void;
  /** The words of a choice that has the empty id. */
  readonly none?: string;
  readonly hint?: string;
  readonly fault?: string | null;
}

export function Select({ label, value, choices, onChoose, none, hint, fault = null }: SelectProps) {
  const id = useId();
  const said = fault ?? hint;
  return (
    <div className={style["field"]}>
      <label htmlFor={id}>{label}</label>
      <select
        id={id}
        value={value}
        aria-invalid={fault !== null || undefined}
        aria-describedby={said === undefined ? undefined : `${id}-said`}
        onChange={(event) => onChoose(event.currentTarget.value)}
      >
        {none !== undefined && <option value="">{none}</option>}
        {choices.map((choice) => (
          <option key={choice.id} value={choice.id}>
            {choice.name}
          </option>
        ))}
      </select>
      {said !== undefined && (
        <p id={`${id}-said`} className={style[fault === null ? "hint" : "fault"]}>
          {said}
        </p>
      )}
    </div>
  );
}

interface DeleteDialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly onDelete: () => Promise<void>;
  readonly children: ReactNode;
}

export function DeleteDialog({ onDelete, children, ...rest }: DeleteDialogProps) {
  return (
    <CheckedDialog {...rest} action="Delete" onSubmit={onDelete}>
      <p>{children}</p>
    </CheckedDialog>
  );
}
