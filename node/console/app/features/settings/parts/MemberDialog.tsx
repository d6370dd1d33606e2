// A member: groups, what they reach, and how they are removed.
import { useState } from "react";
import { faultOf, removeMember, seeAs, type Group, type Member } from "../../../api/people";
import { Button, ButtonLink } from "../../../design/Button";
import { Confirm } from "../../../design/Confirm";
import { Dialog, DialogActions } from "../../../design/Dialog";
import { toast } from "../../../design/Toast";
import { useLinks } from "../../../lib/links";
import { navigate } from "../../../lib/router";
import style from "../settings.module.css";
import { writePeople } from "../url";
import { Moment } from "./Invitations";

interface MemberDialogProps {
  readonly organization: string;
  readonly member: Member;
  readonly groups: readonly Group[];
  /** Whether they own the organization; null if the person who looks may not know. */
  readonly isOwner: boolean | null;
  readonly isSelf: boolean;
  readonly maySeeAs: boolean;
  readonly mayRemove: boolean;
  readonly onClose: () => void;
}

function Facts({ organization, member, groups, isOwner }: MemberDialogProps) {
  return (
    <dl className={style["facts"]}>
      <dt>{member.isService ? "Service account" : "E-mail"}</dt>
      <dd>{member.email}</dd>
      <dt>Groups</dt>
      <dd>
        {groups.length === 0 && "None"}
        {groups.map((group, index) => (
          <span key={group.id}>
            {index > 0 && ", "}
            <a href={writePeople(organization, "groups", { open: group.id, filter: "" })}>{group.name}</a>
          </span>
        ))}
      </dd>
      {isOwner !== null && (
        <>
          <dt>Owner</dt>
          <dd>{isOwner ? "Yes" : "No"}</dd>
        </>
      )}
      <dt>Account since</dt>
      <dd>
        <Moment at={member.created} />
      </dd>
    </dl>
  );
}

export function MemberDialog(props: MemberDialogProps) {
  const { organization, member, isSelf, maySeeAs, mayRemove, onClose } = props;
  const links = useLinks();
  const [isRemoving, setRemoving] = useState(false);
  const reach = links.page("settings", organization, "", ["access"], [
    ["by", "person", ""],
    ["user", member.id, ""],
  ]);
  const see = async (): Promise<void> => {
    const fault = await seeAs(member, () => navigate(links.home(organization), "push"));
    if (fault !== null) toast(fault, true);
  };
  if (isRemoving) {
    return (
      <Confirm
        title={`Remove ${member.name}?`}
        action="Remove"
        onClose={onClose}
        onConfirm={async () => {
          const fault = await faultOf(removeMember(organization, member.id));
          if (fault === null) toast(`${member.name} is no member any more.`);
          return fault;
        }}
      >
        {member.name} loses all access to {organization}, and their API keys in it are deleted. What they wrote stays.
        {isSelf && " This is you: you will be signed out of the organization."}
      </Confirm>
    );
  }
  return (
    <Dialog title={member.name} onClose={onClose}>
      <Facts {...props} />
      <DialogActions>
        {mayRemove && <Button onClick={() => setRemoving(true)}>Remove</Button>}
        {maySeeAs && !isSelf && <Button onClick={() => void see()}>See what they see</Button>}
        <ButtonLink look="primary" href={reach}>
          What they reach
        </ButtonLink>
      </DialogActions>
    </Dialog>
  );
}
