// The difference that a change of grants makes, and the button that makes it.
import { useState } from "react";
import { changeGrants, type GrantChange } from "../../../api/access";
import { faultOf } from "../../../api/people";
import { Button } from "../../../design/Button";
import { DialogActions } from "../../../design/Dialog";
import { toast } from "../../../design/Toast";
import style from "../access.module.css";
import type { AskedObject } from "../queries";
import { changeWords, type NameOf } from "../words";

interface ChangesProps {
  readonly organization: string;
  readonly object: AskedObject;
  readonly changes: readonly GrantChange[];
  readonly nameOf: NameOf;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

export function Changes({ organization, object, changes, nameOf, onDone, onClose }: ChangesProps) {
  const [fault, setFault] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const apply = async (): Promise<void> => {
    if (isSending || changes.length === 0) return;
    setSending(true);
    const failure = await faultOf(changeGrants(organization, object, changes));
    setSending(false);
    setFault(failure);
    if (failure !== null) return;
    toast(changes.length === 1 ? "The access is changed." : `${changes.length} changes of access are made.`);
    onDone();
  };
  return (
    <>
      {changes.length > 0 && (
        <ul className={style["changes"]} aria-label="What changes">
          {changes.map((change) => {
            const words = changeWords(change, nameOf);
            return (
              <li key={`${words} ${change.user ?? change.group ?? ""}`} data-taken={!change.isAdded}>
                {change.isAdded ? "+ " : "− "}
                {words}
              </li>
            );
          })}
        </ul>
      )}
      <p className={style["fault"]} role="alert">
        {fault}
      </p>
      <DialogActions>
        <Button onClick={onClose}>Close</Button>
        <Button look="primary" disabled={changes.length === 0} onClick={() => void apply()}>
          {changes.length < 2 ? "Apply the change" : `Apply ${changes.length} changes`}
        </Button>
      </DialogActions>
    </>
  );
}
