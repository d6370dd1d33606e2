// The names that the section about access needs: people, groups, roles, projects and the objects of the chosen kind.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Named } from "../../api/access";
import { byName, groupsQuery, memberDetail, membersQuery, rolesQuery, type Group, type Member, type Role } from "../../api/people";
import { projectsQuery } from "../../api/queries";
import type { SectionProps } from "../../api/settings";
import type { Candidate } from "./parts/GrantDialog";
import { objectsQuery } from "./queries";
import type { Subject } from "./rows";
import type { AccessState } from "./url";
import type { NameOf } from "./words";

export interface Known {
  readonly organization: Named;
  /** The id of the person who looks. */
  readonly me: string;
  readonly members: readonly Member[];
  readonly groups: readonly Group[];
  readonly roles: readonly Role[];
  readonly projects: readonly Named[];
  readonly objects: readonly Named[];
  readonly nameOf: NameOf;
  /** Whether names are still being read. An id is not shown in the place of one before that ends. */
  readonly isReading: boolean;
  /** Everybody that something can be granted to. */
  readonly candidates: readonly Candidate[];
  /** A person or a group without any access, or null if there is no such one. */
  readonly subjectOf: (id: string) => Subject | null;
}

const NONE: readonly never[] = [];

export function useKnown({ session, organization }: SectionProps, state: AccessState): Known {
  const { name } = organization;
  const { data: members = NONE, isLoading: areMembers } = useQuery(membersQuery(name));
  const { data: groups = NONE, isLoading: areGroups } = useQuery(groupsQuery(name));
  const { data: roles = NONE, isLoading: areRoles } = useQuery(rolesQuery(name));
  const { data: found, isLoading: areProjects } = useQuery(projectsQuery(name));
  const projects = found?.projects ?? NONE;
  const { data: objects = NONE, isLoading: areObjects } = useQuery(objectsQuery(name, state.kind, state.project));
  const { data: clusters = NONE, isLoading: areClusters } = useQuery(objectsQuery(name, "project_group", ""));
  const isReading = areMembers || areGroups || areRoles || areProjects || areObjects || areClusters;
  return useMemo(() => {
    const all: readonly Named[] = [organization, ...members, ...groups, ...roles, ...projects, ...clusters, ...objects];
    const names = new Map(all.map((one) => [one.id, one.name]));
    const candidates: readonly Candidate[] = [
      ...[...groups].sort(byName).map((one) => ({ id: one.id, name: one.name, detail: "group", isGroup: true })),
      ...[...members].sort(byName).map((one) => ({
        id: one.id,
        name: one.name,
        detail: memberDetail(one),
        isGroup: false,
      })),
    ];
    const subjects = new Map(candidates.map((one) => [one.id, { ...one, ways: [] }]));
    return {
      organization,
      me: session.user.id,
      members: [...members].sort(byName),
      groups,
      roles,
      projects: [...projects].sort(byName),
      objects: [...objects].sort(byName),
      nameOf: (id) => names.get(id) ?? id,
      isReading,
      candidates,
      subjectOf: (id) => subjects.get(id) ?? null,
    };
  }, [organization, session, members, groups, roles, projects, objects, clusters, isReading]);
}
