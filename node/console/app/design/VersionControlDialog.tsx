// The dialog that chooses the version as of which a screen reads: now, a moment, or a transaction.
import { useState, type FormEvent } from "react";
import { preferences } from "../lib/preferences";
import { zoneName } from "../lib/time";
import { momentOf, readVersion } from "../lib/version";
import { Button } from "./Button";
import { Dialog, DialogActions } from "./Dialog";
import { Field } from "./Field";
import style from "./VersionControl.module.css";
import { fieldText, momentOfField, momentText, versionWords } from "./VersionControlWords";

export interface VersionDialogProps {
  /** The version that is shown; empty for now. */
  readonly version: string;
  /** The newest transaction that was read, which the dialog offers; null without one. */
  readonly newest?: string | null;
  readonly onVersion: (version: string) => void;
  readonly onClose: () => void;
}

type Kind = "now" | "moment" | "transaction";

interface Start {
  readonly kind: Kind;
  readonly moment: string;
  readonly transaction: string;
}

function startOf(version: string): Start {
  const read = readVersion(version);
  const transaction = read.kind === "transaction" ? read.id : read.kind === "unknown" ? read.text : "";
  const moment = read.kind === "moment" ? read.at : (momentOf(transaction) ?? new Date());
  const kind = read.kind === "unknown" ? "transaction" : read.kind === "now" ? "moment" : read.kind;
  return { kind, moment: fieldText(moment), transaction };
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
  return moment === null ? "The column _xact_id of a row has it." : `It is of ${versionWords(momentText(moment)) ?? ""}.`;
}

/** The chosen version, or what is wrong with what was entered. */
function chosen(kind: Kind, moment: string, transaction: string): { readonly version: string } | { readonly fault: string } {
  if (kind === "now") return { version: "" };
  if (kind === "moment") {
    const at = momentOfField(moment);
    return Number.isNaN(at.getTime()) ? { fault: "Enter a day and a time." } : { version: momentText(at) };
  }
  const isTransaction = readVersion(transaction).kind === "transaction";
  return isTransaction ? { version: transaction.trim() } : { fault: "A transaction id has digits only, or 16 hex digits." };
}

export function VersionDialog({ version, newest = null, onVersion, onClose }: VersionDialogProps) {
  const [start] = useState(() => startOf(version));
  const [kind, setKind] = useState<Kind>(start.kind);
  const [moment, setMoment] = useState(start.moment);
  const [transaction, setTransaction] = useState(start.transaction || (newest ?? ""));
  const [fault, setFault] = useState<string | null>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const result = chosen(kind, moment, transaction);
    if ("fault" in result) return setFault(result.fault);
    onClose();
    onVersion(result.version);
  };
  return (
    <Dialog title="Read rows as of" onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <Kinds
          kind={kind}
          onKind={(one) => {
            setFault(null);
            setKind(one);
          }}
        />
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
