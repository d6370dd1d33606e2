// Invitations: those of the person who looks, to answer, and those of the organization that nobody has answered yet.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import {
  answerInvitation,
  faultOf,
  invitationsQuery,
  ownInvitationsQuery,
  removeMember,
  type Group,
  type Invitation,
  type OwnInvitation,
} from "../../../api/people";
import { Button } from "../../../design/Button";
import { Confirm } from "../../../design/Confirm";
import { toast } from "../../../design/Toast";
import { preferences } from "../../../lib/preferences";
import { fullMoment, now, parseMoment, shortMoment } from "../../../lib/time";
import { byId } from "../people";
import style from "../settings.module.css";

/** A moment, short, with both zones in its tooltip. */
export function Moment({ at }: { readonly at: string | null }) {
  const moment = parseMoment(at);
  return <span title={fullMoment(moment)}>{shortMoment(moment, now.value, preferences.value.zone)}</span>;
}

function OwnOne({ invitation }: { readonly invitation: OwnInvitation }) {
  const { id, organization, invitedBy } = invitation;
  const answer = async (how: "accept" | "decline"): Promise<void> => {
    const fault = await faultOf(answerInvitation(id, how));
    const done = how === "accept" ? `You belong to ${organization} now.` : `The invitation to ${organization} is declined.`;
    toast(fault ?? done, fault !== null);
  };
  return (
    <div className={style["strip"]}>
      <p>
        {invitedBy ?? "Somebody"} invites you to the organization <strong>{organization}</strong>.
      </p>
      <Button look="primary" onClick={() => void answer("accept")}>
        Accept
      </Button>
      <Button onClick={() => void answer("decline")}>Decline</Button>
    </div>
  );
}

/** The invitations that the person has to answer. Nothing is shown where there are none. */
export function OwnInvitations({ person }: { readonly person: string }) {
  const found = useQuery(ownInvitationsQuery(person)).data ?? [];
  return (
    <section aria-label="Your invitations" hidden={found.length === 0}>
      {found.map((invitation) => (
        <OwnOne key={invitation.id} invitation={invitation} />
      ))}
    </section>
  );
}

interface PendingProps {
  readonly organization: string;
  readonly groups: readonly Group[];
}

export function Pending({ organization, groups }: PendingProps) {
  const [asked, setAsked] = useState<Invitation | null>(null);
  const found = useQuery(invitationsQuery(organization)).data ?? [];
  const known = byId(groups);
  if (found.length === 0) return null;
  return (
    <section className={style["part"]} aria-label="Pending invitations">
      <h2>Pending invitations</h2>
      <ul className={style["list"]} aria-label="Pending invitations">
        {found.map((one) => (
          <li key={one.id}>
            <span>{one.email}</span>
            <span className={style["soft"]}>
              {one.groups.map((id) => known.get(id)?.name ?? id).join(", ")}
              {one.invitedBy !== null && ` by ${one.invitedBy}, `}
              <Moment at={one.created} />
            </span>
            <Button look="quiet" aria-label={`Withdraw the invitation of ${one.email}`} onClick={() => setAsked(one)}>
              Withdraw
            </Button>
          </li>
        ))}
      </ul>
      {asked !== null && (
        <Confirm
          title="Withdraw the invitation"
          action="Withdraw"
          onClose={() => setAsked(null)}
          onConfirm={async () => {
            const fault = await faultOf(removeMember(organization, asked.id));
            if (fault === null) toast(`The invitation of ${asked.email} is withdrawn.`);
            return fault;
          }}
        >
          {asked.email} will not be able to accept it any more.
        </Confirm>
      )}
    </section>
  );
}
