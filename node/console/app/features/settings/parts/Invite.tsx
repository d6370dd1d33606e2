// The dialog that invites people.
import { useState, type FormEvent } from "react";
import { byName, faultOf, invite, toggled, type Group } from "../../../api/people";
import { Button } from "../../../design/Button";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { addressesIn } from "../people";
import style from "../settings.module.css";
import { Checks } from "./Shared";

interface InviteProps {
  readonly organization: string;
  readonly groups: readonly Group[];
  readonly onInvited: (emails: readonly string[]) => void;
  readonly onClose: () => void;
}

export function Invite({ organization, groups, onInvited, onClose }: InviteProps) {
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [fault, setFault] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (isSending) return;
    const { emails, wrong } = addressesIn(typed);
    if (wrong !== null) return setFault(`“${wrong}” is not an e-mail address.`);
    if (emails.length === 0) return setFault("Enter an address first.");
    setSending(true);
    const failure = await faultOf(invite(organization, emails, [...chosen]));
    setSending(false);
    if (failure === null) onInvited(emails);
    else setFault(failure);
  };
  return (
    <Dialog title="Invite people" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <label className={style["area"]}>
          <span>E-mail addresses</span>
          <textarea
            autoFocus
            autoComplete="off"
            spellCheck={false}
            aria-invalid={fault !== null}
            aria-describedby="invite-fault"
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <p className={style["soft"]}>
          Whoever belongs to no other organization is a member at once. The others have to accept. Assay sends no mail: tell
          them yourself.
        </p>
        {groups.length > 0 && (
          <Checks
            legend="Groups"
            choices={[...groups].sort(byName)}
            chosen={chosen}
            onToggle={(id) => setChosen(toggled(chosen, id))}
          />
        )}
        <p id="invite-fault" className={style["fault"]} role="alert">
          {fault}
        </p>
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" aria-disabled={isSending}>
            Invite
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
