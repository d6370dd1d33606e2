// The dialog that shows rows which somebody else changed meanwhile, side by side, before they are overwritten.
import { useState } from "react";
import { Button } from "../../../design/Button";
import { classes } from "../../../design/classes";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { exactCount } from "../../../lib/numbers";
import { blockOf, isSame, type Field } from "../cells";
import type { Conflict, Side } from "../conflicts";
import style from "./Conflicts.module.css";

interface ConflictsProps {
  readonly conflicts: readonly Conflict[];
  readonly onDecide: (sides: ReadonlyMap<string, Side>) => void;
  readonly onClose: () => void;
}

const BLOCK = 2000;

const shortBlock = (value: unknown): string => {
  const text = value === null || value === undefined ? "-" : blockOf(value);
  return text.length > BLOCK ? `${text.slice(0, BLOCK)}…` : text;
};

function Values({ conflict, field }: { readonly conflict: Conflict; readonly field: Field }) {
  const { edit, theirs } = conflict;
  const before = edit.base?.[field];
  const mine = field in edit.values ? edit.values[field] : (theirs?.[field] ?? before);
  const cells = [
    { title: "Before", value: before, isChanged: false },
    { title: "Theirs", value: theirs?.[field], isChanged: theirs !== null && !isSame(theirs[field], before) },
    { title: "Yours", value: mine, isChanged: field in edit.values },
  ];
  return (
    <>
      <h4 className={style["field"]}>{field}</h4>
      <div className={style["values"]}>
        {cells.map(({ title, value, isChanged }) => (
          <div key={title} className={classes(style["value"], isChanged && style["changed"])}>
            <span className={style["side"]}>
              {title}
              {isChanged && ", changed"}
            </span>
            <pre tabIndex={0} role="region" aria-label={`${field}, ${title.toLowerCase()}`}>
              {title === "Theirs" && theirs === null ? "The row was deleted." : shortBlock(value)}
            </pre>
          </div>
        ))}
      </div>
    </>
  );
}

interface OneProps {
  readonly conflict: Conflict;
  readonly side: Side;
  readonly onSide: (side: Side) => void;
}

function One({ conflict, side, onSide }: OneProps) {
  const { id, theirs, fields } = conflict;
  const choices: readonly (readonly [Side, string])[] = [
    ["mine", theirs === null ? "Write the row anew, with yours" : "Write yours over theirs"],
    ["theirs", theirs === null ? "Leave it deleted" : "Keep theirs"],
  ];
  return (
    <fieldset className={style["one"]}>
      <legend>
        Row <code>{id}</code>
      </legend>
      {fields.map((field) => (
        <Values key={field} conflict={conflict} field={field} />
      ))}
      <div className={style["choices"]}>
        {choices.map(([value, words]) => (
          <label key={value}>
            <input type="radio" name={`side-${id}`} checked={side === value} onChange={() => onSide(value)} /> {words}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

export function Conflicts({ conflicts, onDecide, onClose }: ConflictsProps) {
  const [sides, setSides] = useState<ReadonlyMap<string, Side>>(new Map());
  const sideOf = (id: string): Side => sides.get(id) ?? "theirs";
  const count = conflicts.length;
  return (
    <Dialog
      title={count === 1 ? "Somebody else changed this row meanwhile" : `Somebody else changed ${exactCount(count)} of these rows meanwhile`}
      form="wide"
      onClose={onClose}
    >
      <p>Nothing is saved yet. Decide for each row, then save.</p>
      <div className={style["all"]}>
        {conflicts.map((conflict) => (
          <One
            key={conflict.id}
            conflict={conflict}
            side={sideOf(conflict.id)}
            onSide={(side) => setSides(new Map([...sides, [conflict.id, side]]))}
          />
        ))}
      </div>
      <DialogActions>
        <Button onClick={onClose}>Back to the edits</Button>
        <Button look="primary" onClick={() => onDecide(new Map(conflicts.map(({ id }) => [id, sideOf(id)])))}>
          Save
        </Button>
      </DialogActions>
    </Dialog>
  );
}
