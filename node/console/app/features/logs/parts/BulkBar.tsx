// The bar over the list while rows are selected: what can be done with all of them.
import { useEffect } from "react";
import { Button, IconButton } from "../../../design/Button";
import { withKeys } from "../../../design/Kbd";
import { announce } from "../../../lib/store";
import { countWords, type BulkAction, type Chosen } from "./chosen";
import style from "./BulkBar.module.css";

interface BulkBarProps {
  readonly chosen: Chosen;
  readonly onAction: (action: BulkAction) => void;
  readonly onClear: () => void;
}

export function BulkBar({ chosen, onAction, onClear }: BulkBarProps) {
  const count = chosen.keys.length;
  useEffect(() => announce(`${countWords(count, chosen.shape)} selected`), [count, chosen.shape]);
  return (
    <div className={style["bar"]} role="toolbar" aria-label="Selected rows">
      <span className={style["count"]}>{countWords(count, chosen.shape)} selected</span>
      <Button title={withKeys("Tag", "#")} onClick={() => onAction("tag")}>
        Tag
      </Button>
      <Button onClick={() => onAction("score")}>Score</Button>
      <Button onClick={() => onAction("assign")}>Assign</Button>
      <Button title={withKeys("Add to a dataset", "d")} onClick={() => onAction("dataset")}>
        Add to dataset
      </Button>
      <Button onClick={() => onAction("delete")}>Delete</Button>
      <IconButton icon="close" label="Select nothing" onClick={onClear} />
    </div>
  );
}
