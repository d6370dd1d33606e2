// The bar over the list while rows are selected: what can be done with all of them.
import { useEffect } from "react";
import { Button, IconButton } from "../../../design/Button";
import { withKeys } from "../../../design/Kbd";
import { exactCount } from "../../../lib/numbers";
import { announce } from "../../../lib/store";
import type { BulkAction } from "./chosen";
import style from "./BulkBar.module.css";

interface BulkBarProps {
  /** The rows in words: `3 traces`. */
  readonly words: string;
  /** Whether the list shows the past, which nobody changes. */
  readonly isPast: boolean;
  /** How many rows the filter finds, if more than are selected can be; null otherwise. */
  readonly matching: number | null;
  readonly onMatching: (count: number) => void;
  readonly onAction: (action: BulkAction) => void;
  readonly onClear: () => void;
}

export function BulkBar({ words, isPast, matching, onMatching, onAction, onClear }: BulkBarProps) {
  useEffect(() => announce(`${words} selected`), [words]);
  return (
    <div className={style["bar"]} role="toolbar" aria-label="Selected rows">
      <span className={style["count"]}>{words} selected</span>
      {isPast ? (
        <span>The past cannot be changed.</span>
      ) : (
        <>
          {matching !== null && <Button onClick={() => onMatching(matching)}>Select all {exactCount(matching)} that match</Button>}
          <Button title={withKeys("Tag", "#")} onClick={() => onAction("tag")}>
            Tag
          </Button>
          <Button onClick={() => onAction("score")}>Score</Button>
          <Button onClick={() => onAction("assign")}>Assign</Button>
          <Button title={withKeys("Add to a dataset", "d")} onClick={() => onAction("dataset")}>
            Add to dataset
          </Button>
          <Button onClick={() => onAction("delete")}>Delete</Button>
        </>
      )}
      <IconButton icon="close" label="Select nothing" onClick={onClear} />
    </div>
  );
}
