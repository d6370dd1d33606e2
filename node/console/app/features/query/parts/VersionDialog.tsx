// The dialog that chooses the version as of which the query reads: now, a moment, or a transaction.
import { useState, type FormEvent } from "react";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { Field } from "../../../design/Field";
import { preferences } from "../../../lib/preferences";
import { clock, day, zoneName } from "../../../lib/time";
import { momentOf, readVersion } from "../../../lib/version";
import style from "./VersionDialog.module.css";

interface VersionDialogProps {
  readonly version: string;
  /** The newest transaction of the shown result; null without one. */
  readonly newest: string | null;
  readonly onVersion: (version: string) => void;
  readonly onClose: () => void;
}

type Kind = "now" | "moment" | "transaction";

/** A moment as the browser's field for times has it, in the zone of the page. */
const fieldText = (moment: Date): string => {
  const zone = preferences.peek().zone;
  return `${day(moment, zone)}T${clock(moment, zone).slice(0, 8)}`;
};

const momentOfField = (text: string): Date =>
  new Date(preferences.peek().zone === "utc" ? `${text}Z` : text);

function startOf(version: string): { readonly kind: Kind; readonly moment: string; readonly transaction: string } {
  const read = readVersion(version);
  const transaction = read.kind === "transaction" ? read.id : read.kind === "unknown" ? read.text : "";
  const moment = read.kind === "moment" ? read.at : (momentOf(transaction) ?? new Date());
  return { kind: read.kind === "unknown" ? "transaction" : read.kind, moment: fieldText(moment), transaction };
}

const CHOICES: readonly (readonly [Kind, string])[] = [
  ["now", "Now"],
  ["moment", "A moment"],
  ["transaction", "A transaction"],
];

function Kinds({ kind, onKind }: { readonly kind: Kind; readonly onKind: (kind: Kind) => void }) {
  return (
    <fieldset className={style["kinds"]}>
      <legend className="only-spoken">Version</legend>
      {CHOICES.map(([one, title]) => (
        <label key={one} className={style["kind"]}>
          <input type="radio" name="version" checked={one === kind} onChange={() => onKind(one)} />
          {title}
        </label>
      ))}
    </fieldset>
  );
}

function transactionHint(text: string): string {
  const moment = momentOf(text.trim());
  if (moment === null) return "The column _xact_id of a row has it.";
  return `It is of ${day(moment, "utc")} ${clock(moment, "utc").slice(0, 8)} UTC.`;
}

export function VersionDialog({ version, newest, onVersion, onClose }: VersionDialogProps) {
  const [start] = useState(() => startOf(version));
  const [kind, setKind] = useState<Kind>(start.kind);
  const [moment, setMoment] = useState(start.moment);
  const [transaction, setTransaction] = useState(start.transaction || (newest ?? ""));
  const [fault, setFault] = useState<string | null>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const at = momentOfField(moment);
    if (kind === "moment" && Number.isNaN(at.getTime())) return setFault("Enter a day and a time.");
    const isTransaction = readVersion(transaction).kind === "transaction";
    if (kind === "transaction" && !isTransaction) return setFault("A transaction id has digits only, or 16 hex digits.");
    onVersion(kind === "now" ? "" : kind === "moment" ? at.toISOString().replace(".000Z", "Z") : transaction.trim());
    onClose();
  };
  return (
    <Dialog title="Read rows as of" onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <Kinds kind={kind} onKind={setKind} />
        {kind === "moment" && (
          <Field
            label={`Moment, ${zoneName(new Date(), preferences.value.zone)}`}
            type="datetime-local"
            step={1}
            value={moment}
            onChange={(event) => setMoment(event.currentTarget.value)}
            fault={fault}
            hint="Rows are shown as they were then, with those that were deleted since."
          />
        )}
        {kind === "transaction" && (
          <Field
            label="Transaction id"
            autoComplete="off"
            spellCheck={false}
            value={transaction}
            onChange={(event) => setTransaction(event.currentTarget.value)}
            fault={fault}
            hint={transactionHint(transaction)}
          />
        )}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary">
            Read as of this
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
