// A field of several lines in a form.
import style from "./Dialogs.module.css";

interface AreaProps {
  readonly label: string;
  readonly hint?: string;
  readonly value: string;
  readonly rows: number;
  readonly onText: (text: string) => void;
}

/** A field of several lines. */
export function Area({ label, hint, value, rows, onText }: AreaProps) {
  return (
    <label className={style["area"]}>
      {label}
      {hint !== undefined && <span className={style["hint"]}>{hint}</span>}
      <textarea rows={rows} value={value} spellCheck={false} onInput={(event) => onText(event.currentTarget.value)} />
    </label>
  );
}
