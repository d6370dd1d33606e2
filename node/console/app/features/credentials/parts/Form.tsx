// The fields that forms of credentials have besides those of the design.
import { useId, type ReactNode } from "react";
import { classes } from "../../../design/classes";
import field from "../../../design/Field.module.css";
import { Marked } from "../../../design/Marked";
import style from "./Form.module.css";

export interface Choice {
  readonly value: string;
  readonly title: string;
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly choices: readonly Choice[];
  readonly onChoose: (value: string) => void;
  /** Whether the label is only spoken. */
  readonly isBare?: boolean;
  readonly isDisabled?: boolean;
}

/** A field to choose one of a few values. */
export function Select({ label, value, choices, onChoose, isBare = false, isDisabled = false }: SelectProps) {
  const id = useId();
  return (
    <div className={field["field"]}>
      <label htmlFor={id} className={isBare ? "only-spoken" : field["label"]}>
        {label}
      </label>
      <select
        id={id}
        className={field["input"]}
        value={value}
        disabled={isDisabled}
        onChange={(event) => onChoose(event.currentTarget.value)}
      >
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.title}
          </option>
        ))}
      </select>
    </div>
  );
}

interface AreaProps {
  readonly label: string;
  readonly hint?: string;
  readonly value: string;
  readonly rows: number;
  readonly onText: (text: string) => void;
}

/** A field of several lines. */
export function Area({ label, hint, value, rows, onText }: AreaProps) {
  const id = useId();
  return (
    <div className={field["field"]}>
      <label htmlFor={id} className={field["label"]}>
        {label}
      </label>
      <textarea
        id={id}
        className={classes(field["input"], style["area"])}
        rows={rows}
        spellCheck={false}
        autoComplete="off"
        value={value}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onChange={(event) => onText(event.currentTarget.value)}
      />
      {hint !== undefined && (
        <p id={`${id}-hint`} className={field["hint"]}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** The name of what a dialog is about. It may be long, and is not in the title, which has one line. */
export const Name = ({ name }: { readonly name: string }) => (
  <p className={style["name"]}>
    <Marked text={name} />
  </p>
);

/** Fields beside each other, as far as there is room. */
export const Pair = ({ children }: { readonly children: ReactNode }) => <div className={style["pair"]}>{children}</div>;
