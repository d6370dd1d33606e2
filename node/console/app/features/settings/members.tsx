// The section about members: who belongs to the organization, and who is invited.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { accessQuery, rightsQuery } from "../../api/access";
import { groupsQuery, memberDetail, membersQuery, type Group, type Member } from "../../api/people";
import { readingOf } from "../../api/queries";
import type { SectionProps } from "../../api/settings";
import { Button } from "../../design/Button";
import { Chip } from "../../design/Chip";
import { Empty } from "../../design/Empty";
import { createGridState, gridCommands, type GridColumn } from "../../design/GridTypes";
import { SectionGrid } from "../../design/SectionGrid";
import { SectionPage } from "../../design/SectionPage";
import { toast } from "../../design/Toast";
import { useCommands, useLatest } from "../../lib/commands";
import { navigate } from "../../lib/router";
import { Invite } from "./parts/Invite";
import { Moment, OwnInvitations, Pending } from "./parts/Invitations";
import { MemberDialog } from "./parts/MemberDialog";
import { FILTER_ID, NameFilter, Read } from "./parts/Shared";
import { groupsOfPeople, named, ownersOf } from "./people";
import style from "./settings.module.css";
import { readPeople, writePeople, type PeopleState } from "./url";

interface Row {
  readonly member: Member;
  readonly groups: readonly Group[];
  readonly isOwner: boolean;
  readonly isSelf: boolean;
}

const COLUMNS: readonly GridColumn<Row>[] = [
  {
    id: "name",
    title: "Name",
    width: 200,
    grow: 3,
    cell: ({ member, isSelf }) => (
      <span className={style["name"]} title={`${member.name} ${member.email}`}>
        <span>{member.name}</span>
        {memberDetail(member) !== "" && <span className={style["soft"]}>{memberDetail(member)}</span>}
        {isSelf && <Chip>you</Chip>}
      </span>
    ),
  },
  { id: "groups", title: "Groups", width: 160, grow: 2, cell: ({ groups }) => groups.map(({ name }) => name).join(", ") },
  { id: "owner", title: "Owner", width: 80, cell: ({ isOwner }) => isOwner && <Chip>owner</Chip> },
  { id: "since", title: "Account since", width: 130, align: "end", cell: ({ member }) => <Moment at={member.created} /> },
];

const rowId = (row: Row): string => row.member.id;

/** Everything that the section reads. */
function useMembers({ session, organization }: SectionProps) {
  const { id, name } = organization;
  const me = session.user.id;
  const members = useQuery(membersQuery(name));
  const { data: groups = [], isLoading } = useQuery(groupsQuery(name));
  const owners = ownersOf(useQuery(accessQuery(name, "organization", id, me)).data);
  const rights = useQuery(rightsQuery(name, "org_member", id, me)).data;
  const ofPeople = useMemo(() => groupsOfPeople(groups), [groups]);
  const rowOf = (member: Member): Row => ({
    member,
    groups: ofPeople.get(member.id) ?? [],
    isOwner: owners?.has(member.id) === true,
    isSelf: member.id === me,
  });
  return { members, groups, areGroups: !isLoading, owners, rights, rowOf, me };
}

interface ListProps {
  readonly rows: readonly Row[];
  readonly total: number;
  readonly state: PeopleState;
  readonly hasOwners: boolean;
  readonly go: (state: PeopleState, how: "push" | "replace") => void;
}

function List({ rows, total, state, hasOwners, go }: ListProps) {
  const grid = useMemo(() => createGridState(state.open === "" ? null : state.open), []);
  const commands = useMemo(
    () => [
      ...gridCommands(grid, "Members", "member").filter(({ keys }) => keys !== "x"),
      { id: "members.filter", title: "Filter the members", group: "Members", keys: "/", run: () => document.getElementById(FILTER_ID)?.focus() },
    ],
    [grid],
  );
  useCommands(commands);
  const columns = useMemo(() => COLUMNS.filter(({ id }) => hasOwners || id !== "owner"), [hasOwners]);
  return (
    <>
      <NameFilter what="members" value={state.filter} onValue={(filter) => go({ ...state, filter }, "replace")} />
      {rows.length === 0 ? (
        <Empty action={<Button onClick={() => go({ ...state, filter: "" }, "replace")}>Show all {total}</Button>}>
          No member has a name or an address with “{state.filter}”.
        </Empty>
      ) : (
        <SectionGrid
          label="Members"
          state={grid}
          rows={rows}
          rowId={rowId}
          columns={columns}
          total={rows.length}
          onOpen={(row) => go({ ...state, open: row.member.id }, "push")}
        />
      )}
    </>
  );
}

export function Section(props: SectionProps) {
  const { place, session, organization } = props;
  const { members, groups, areGroups, owners, rights, rowOf, me } = useMembers(props);
  const [isInviting, setInviting] = useState(false);
  const state = readPeople(place);
  const go = (next: PeopleState, how: "push" | "replace"): void =>
    navigate(writePeople(organization.name, "members", next), how);
  const close = useLatest(() => go({ ...state, open: "" }, "replace"));
  const open = members.data?.find(({ id }) => id === state.open);
  const mayInvite = rights?.includes("create") === true;
  return (
    <SectionPage
      title="Members"
      note={rights !== undefined && !rights.includes("read") && "You see only yourself, because nothing lets you read the members."}
      actions={mayInvite && <Button icon="plus" onClick={() => setInviting(true)}>Invite people</Button>}
    >
      <OwnInvitations person={session.user.id} />
      <Read reading={readingOf(members)}>
        {(all) => (
          <List rows={named(all, state.filter, ({ email }) => email).map(rowOf)} total={all.length} state={state} hasOwners={owners !== null} go={go} />
        )}
      </Read>
      {mayInvite && areGroups && <Pending organization={organization.name} groups={groups} />}
      {isInviting && (
        <Invite
          organization={organization.name}
          groups={groups}
          onClose={() => setInviting(false)}
          onInvited={(emails) => {
            setInviting(false);
            toast(emails.length === 1 ? `${emails[0]} is invited.` : `${emails.length} people are invited.`);
          }}
        />
      )}
      {open !== undefined && (
        <MemberDialog
          key={open.id}
          organization={organization.name}
          member={open}
          groups={rowOf(open).groups}
          isOwner={owners === null ? null : owners.has(open.id)}
          isSelf={open.id === me}
          maySeeAs={owners?.has(me) === true}
          mayRemove={rights?.includes("delete") === true}
          onClose={close}
        />
      )}
    </SectionPage>
  );
}
