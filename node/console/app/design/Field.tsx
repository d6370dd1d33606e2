// A field with its label, a hint and what is wrong with it.
import { useId, type ComponentProps, type ReactNode } from "react";
import style from "./Field.module.css";

interface FieldProps extends Omit<ComponentProps<"input">, "className" | "id"> {
  readonly label: string;
  readonly hint?: ReactNode;
  /** What is wrong, in a sentence; null if nothing is. */
  readonly fault?: string | null;
}

export function Field({ label, hint, fault = null, ...rest }: FieldProps) {
  const id = useId();
  const hintId = `${id}-hint`;
  const faultId = `${id}-fault`;
  const described = [hint === undefined ? null : hintId, fault === null ? null : faultId].filter(Boolean).join(" ");
  return (
    <div className={style["field"]}>
      <label htmlFor={id} className={style["label"]}>
        {label}
      </label>
      <input
        {...rest}
        id={id}
        className={style["input"]}
        aria-invalid={fault !== null}
        aria-describedby={described === "" ? undefined : described}
      />
      {hint !== undefined && (
        <p id={hintId} className={style["hint"]}>
          {hint}
        </p>
      )}
      <p id={faultId} className={style["fault"]} role="alert">
        {fault}
      </p>
    </div>
  );
}
