// The section about roles: permissions under a name.
import { useQuery } from "@tanstack/react-query";
import { rolesQuery, type Role } from "../../api/people";
import { readingOf } from "../../api/queries";
import type { SectionProps } from "../../api/settings";
import type { GridColumn } from "../../design/GridTypes";
import { descriptionColumn, ItemList, nameColumn, ReadItem } from "./parts/Item";
import { RolePage } from "./parts/RolePage";
import { readPeople } from "./url";

const NOTE = "A role is a set of permissions that is granted under one name.";

const COLUMNS: readonly GridColumn<Role>[] = [
  nameColumn,
  descriptionColumn,
  { id: "permissions", title: "Permissions", width: 110, align: "end", cell: ({ permissions }) => permissions.length },
  { id: "roles", title: "Roles in it", width: 100, align: "end", cell: ({ roles }) => roles.length },
];

export function Section({ session, organization, place }: SectionProps) {
  const roles = useQuery(rolesQuery(organization.name));
  const state = readPeople(place);
  if (state.open === "") {
    return <ItemList what="role" note={NOTE} organization={organization.name} reading={readingOf(roles)} columns={COLUMNS} state={state} />;
  }
  return (
    <ReadItem what="role" organization={organization.name} id={state.open} reading={readingOf(roles)}>
      {(open, all) => <RolePage key={open.id} organization={organization.name} person={session.user.id} role={open} roles={all} />}
    </ReadItem>
  );
}
