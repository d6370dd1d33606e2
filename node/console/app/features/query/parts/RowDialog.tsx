// One row of the result with all its values in full.
import type { Fields } from "../../../api/narrow";
import { Button } from "../../../design/Button";
import { Copy } from "../../../design/Copy";
import { Dialog } from "../../../design/Dialog";
import { NOTHING } from "../../../lib/numbers";
import { copyText } from "../cells";
import style from "./RowDialog.module.css";

/** Longer values are shown cut, and copied whole. */
const SHOWN_LENGTH = 100_000;

interface RowDialogProps {
  readonly index: number;
  readonly count: number;
  readonly names: readonly string[];
  readonly fields: Fields;
  readonly onStep: (by: number) => void;
  readonly onClose: () => void;
}

function Value({ name, value }: { readonly name: string; readonly value: unknown }) {
  const isAbsent = value === null || value === undefined;
  const text = isAbsent ? NOTHING : copyText(value);
  return (
    <div className={style["field"]}>
      <dt className={style["name"]}>
        <span className={style["title"]}>{name}</span>
        {!isAbsent && <Copy text={text} what={name} />}
      </dt>
      <dd className={style["value"]}>
        <pre className={style["text"]}>{text.slice(0, SHOWN_LENGTH)}</pre>
        {text.length > SHOWN_LENGTH && (
          <p>
            These are the first {SHOWN_LENGTH.toLocaleString("en-US")} of {text.length.toLocaleString("en-US")} characters.
            The button copies all of them.
          </p>
        )}
      </dd>
    </div>
  );
}

export function RowDialog({ index, count, names, fields, onStep, onClose }: RowDialogProps) {
  return (
    <Dialog title={`Row ${index + 1} of ${count.toLocaleString("en-US")}`} form="wide" onClose={onClose}>
      <div className={style["bar"]}>
        <Button icon="up" disabled={index === 0} onClick={() => onStep(-1)}>
          Previous
        </Button>
        <Button icon="down" disabled={index + 1 >= count} onClick={() => onStep(1)}>
          Next
        </Button>
        <Copy text={copyText(fields)} what="the JSON of the row" title="Copy JSON" />
      </div>
      <dl className={style["fields"]} tabIndex={0} aria-label="Values">
        {names.map((name) => (
          <Value key={name} name={name} value={fields[name]} />
        ))}
      </dl>
    </Dialog>
  );
}
