// A box to check in a form.
import style from "./Dialogs.module.css";

interface CheckProps {
  readonly label: string;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
}

export function Check({ label, isOn, onChange }: CheckProps) {
  return (
    <label className={style["check"]}>
      <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  );
}
