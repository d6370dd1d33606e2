// The section about groups: people and groups in groups.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { groupsQuery, membersQuery, type Group } from "../../api/people";
import { readingOf, until } from "../../api/queries";
import type { SectionProps } from "../../api/settings";
import type { GridColumn } from "../../design/GridTypes";
import { GroupPage } from "./parts/GroupPage";
import { descriptionColumn, ItemList, nameColumn, ReadItem } from "./parts/Item";
import { membersOf } from "./people";
import { readPeople } from "./url";

const NOTE = "A grant to a group is a grant to everybody in it, and in the groups in it.";

const columnsOf = (everybody: ReadonlyMap<string, number>): readonly GridColumn<Group>[] => [
  nameColumn,
  descriptionColumn,
  { id: "people", title: "People", width: 80, align: "end", cell: ({ users }) => users.length },
  { id: "groups", title: "Groups", width: 80, align: "end", cell: ({ groups }) => groups.length },
  { id: "all", title: "Everybody in it", width: 120, align: "end", cell: ({ id }) => everybody.get(id) ?? 0 },
];

const NONE: readonly Group[] = [];

export function Section({ session, organization: { name: organization }, place }: SectionProps) {
  const query = useQuery(groupsQuery(organization));
  const { data: members = [], isLoading } = useQuery(membersQuery(organization));
  const state = readPeople(place);
  const groups = query.data ?? NONE;
  const columns = useMemo(
    () => columnsOf(new Map(groups.map((group) => [group.id, membersOf(group, groups).length]))),
    [groups],
  );
  if (state.open === "") return <ItemList what="group" note={NOTE} {...{ organization, columns, state }} reading={readingOf(query)} />;
  return (
    <ReadItem what="group" organization={organization} id={state.open} reading={until(!isLoading, readingOf(query))}>
      {(open, all) => <GroupPage key={open.id} {...{ organization, members }} person={session.user.id} group={open} groups={all} />}
    </ReadItem>
  );
}
