// What the sections about people show: groups of a member, members of a group by which way, and lists by name.
import type { Explanation } from "../../api/access";
import { innerOf, reached } from "../../api/nesting";
import { byName, OWNER_ROLE, type Granted, type Group, type Role } from "../../api/people";

/** Those whose name or another text of theirs contains what is asked, by name. */
export function named<One extends { readonly name: string }>(
  all: readonly One[],
  filter: string,
  other: (one: One) => string,
): readonly One[] {
  const wanted = filter.trim().toLowerCase();
  return all.filter((one) => `${one.name}\n${other(one)}`.toLowerCase().includes(wanted)).sort(byName);
}

export const byId = <One extends { readonly id: string }>(all: readonly One[]): ReadonlyMap<string, One> =>
  new Map(all.map((one) => [one.id, one]));

/** The groups that each person is in themselves, by the person's id. */
export function groupsOfPeople(groups: readonly Group[]): ReadonlyMap<string, readonly Group[]> {
  const found = new Map<string, Group[]>();
  for (const group of [...groups].sort(byName)) {
    for (const user of group.users) {
      const known = found.get(user);
      if (known === undefined) found.set(user, [group]);
      else known.push(group);
    }
  }
  return found;
}

/** Somebody who is in a group, with the groups in between; none for who is in it directly. */
export interface GroupMember {
  readonly user: string;
  readonly through: readonly string[];
}

/** Everybody who is in a group, directly first. Circles of groups do no harm. */
export function membersOf(group: Group, groups: readonly Group[]): readonly GroupMember[] {
  const known = byId(groups);
  const ways = reached(group.id, innerOf(groups.map(({ id, groups: inner }) => ({ id, inner }))));
  const found = new Map<string, readonly string[]>(group.users.map((user) => [user, []]));
  for (const [id, way] of ways) {
    for (const user of known.get(id)?.users ?? []) if (!found.has(user)) found.set(user, way);
  }
  return [...found].map(([user, through]) => ({ user, through }));
}

/** The ids of the owners, or null if the caller may not know. */
export function ownersOf(explanation: Explanation | undefined): ReadonlySet<string> | null {
  if (explanation === undefined || explanation.isOwnOnly) return null;
  const owners = explanation.people.filter(({ ways }) => ways.some(({ roles }) => roles[0]?.id === OWNER_ROLE));
  return new Set(owners.map(({ user }) => user.id));
}

/** The addresses in what somebody has typed, each once, and the first word that is none. */
export function addressesIn(typed: string): { readonly emails: readonly string[]; readonly wrong: string | null } {
  const words = typed.split(/[\s,;]+/).filter((word) => word !== "");
  const wrong = words.find((word) => !/^[^@\s]+@[^@\s]+$/.test(word)) ?? null;
  return { emails: [...new Set(words)], wrong };
}

export const grantedKey = ({ permission, kind }: Granted): string => `${permission} ${kind ?? ""}`;

/** What a role gives through the roles in it: for each permission the name of such a role. */
export function throughRoles(role: Role, inner: readonly string[], roles: readonly Role[]): ReadonlyMap<string, string> {
  const known = byId(roles);
  const next = new Map(roles.map((one) => [one.id, one.id === role.id ? inner : one.roles]));
  const found = new Map<string, string>();
  for (const id of reached(role.id, next).keys()) {
    const one = known.get(id);
    for (const granted of one?.permissions ?? []) {
      const key = grantedKey(granted);
      if (one !== undefined && !found.has(key)) found.set(key, one.name);
    }
  }
  return found;
}

export interface RoleDraft {
  readonly permissions: ReadonlySet<string>;
  readonly roles: ReadonlySet<string>;
}

export const draftOf = (role: Role): RoleDraft => ({
  permissions: new Set(role.permissions.map(grantedKey)),
  roles: new Set(role.roles),
});

const readKey = (key: string): Granted => {
  const [permission = "", kind = ""] = key.split(" ");
  return { permission, kind: kind === "" ? null : kind };
};

const without = (all: ReadonlySet<string>, others: ReadonlySet<string>): readonly string[] =>
  [...all].filter((one) => !others.has(one));

/** What turns a role into its draft. */
export function roleChange(role: Role, draft: RoleDraft) {
  const before = draftOf(role);
  return {
    added: without(draft.permissions, before.permissions).map(readKey),
    removed: without(before.permissions, draft.permissions).map(readKey),
    addedRoles: without(draft.roles, before.roles),
    removedRoles: without(before.roles, draft.roles),
  };
}
