// The bar below the grid while rows are selected.
import { FormDialog } from "../../../design/FormDialog";
import { useEffect, useState } from "react";
import { Button, IconButton } from "../../../design/Button";
import { Field } from "../../../design/Field";
import { withKeys } from "../../../design/Kbd";
import { exactCount } from "../../../lib/numbers";
import { announce } from "../../../lib/store";
import type { Sheet } from "../sheet";
import style from "./Dataset.module.css";

export const rowWords = (count: number): string => (count === 1 ? "1 row" : `${exactCount(count)} rows`);

interface SelectionBarProps {
  readonly sheet: Sheet;
  readonly isEditable: boolean;
  readonly onFill: () => void;
  readonly onDelete: () => void;
}

export function SelectionBar({ sheet, isEditable, onFill, onDelete }: SelectionBarProps) {
  const count = sheet.selection.ids.value.size;
  useEffect(() => {
    if (count > 0) announce(`${rowWords(count)} selected`);
  }, [count]);
  if (count === 0) return null;
  return (
    <div className={style["bar"]} role="toolbar" aria-label="Selected rows">
      <span className={style["barText"]}>{rowWords(count)} selected</span>
      {isEditable && (
        <>
          {count > 1 && (
            <Button title={withKeys("Fill the column down from the first selected row", "mod+d")} onClick={onFill}>
              Fill down
            </Button>
          )}
          <Button onClick={onDelete}>Delete</Button>
        </>
      )}
      <IconButton icon="close" label="Select nothing" onClick={() => sheet.selection.clear()} />
    </div>
  );
}

interface DeleteRowsProps {
  readonly count: number;
  readonly onDelete: () => void;
  readonly onClose: () => void;
}

export function DeleteRows({ count, onDelete, onClose }: DeleteRowsProps) {
  const [typed, setTyped] = useState("");
  return (
    <FormDialog
      title={`Delete ${rowWords(count)}?`}
      action="Delete"
      onClose={onClose}
      onSubmit={() => {
        if (typed.trim() !== String(count)) return Promise.resolve(`Type ${count}, the number of rows.`);
        onDelete();
        return Promise.resolve(null);
      }}
    >
      <p>You can take it back for 10 seconds. Earlier versions of the dataset keep the rows.</p>
      <Field
        label={`Type ${count} to delete them`}
        autoComplete="off"
        inputMode="numeric"
        autoFocus
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
