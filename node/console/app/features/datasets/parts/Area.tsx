// A field of several lines in a form.
import style from "./Area.module.css";

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
