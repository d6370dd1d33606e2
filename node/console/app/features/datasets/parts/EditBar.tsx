// The bar below the grid while there are edits: how many, and what to do with them.
import { useEffect } from "react";
import { Button } from "../../../design/Button";
import { withKeys } from "../../../design/Kbd";
import { announce } from "../../../lib/store";
import type { EditStore } from "../store";
import { editWords } from "../useSaving";
import style from "./Dataset.module.css";

interface EditBarProps {
  readonly store: EditStore;
  readonly isSaving: boolean;
  readonly onSave: () => void;
}

export function EditBar({ store, isSaving, onSave }: EditBarProps) {
  const { past, present, future } = store.history.value;
  const words = editWords(present);
  useEffect(() => {
    if (words !== "") announce(`${words} not saved`);
  }, [words]);
  if (present.rows.size === 0 && future.length === 0) return null;
  return (
    <div className={style["bar"]} role="toolbar" aria-label="Unsaved edits">
      <span className={style["barText"]}>{words === "" ? "Everything was taken back" : `${words} not saved`}</span>
      <Button title={withKeys("Undo", "z")} disabled={past.length === 0} onClick={() => store.dispatch({ kind: "undo" })}>
        Undo
      </Button>
      <Button title={withKeys("Redo", "Z")} disabled={future.length === 0} onClick={() => store.dispatch({ kind: "redo" })}>
        Redo
      </Button>
      {present.rows.size > 0 && (
        <>
          <Button onClick={() => store.dispatch({ kind: "clear" })}>Discard</Button>
          <Button look="primary" title={withKeys("Save", "mod+s")} aria-disabled={isSaving} onClick={onSave}>
            {isSaving ? "Saving" : "Save"}
          </Button>
        </>
      )}
    </div>
  );
}
