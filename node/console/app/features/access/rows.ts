// Who stands in the matrix of an object, with which permissions, and by which ways. No DOM, no network.
import { PERMISSIONS, type Explanation, type Gift, type Grant, type GrantChange, type Named, type Way } from "../../api/access";
import { innerOf, reached } from "../../api/nesting";
import { byName, memberDetail, type Granted, type Group, type Member, type Role } from "../../api/people";

export type Hold = "here" | "inherited" | "none";

/** A person or a group, with how they come to what they may do. */
export interface Subject {
  readonly id: string;
  readonly name: string;
  readonly detail: string;
  readonly isGroup: boolean;
  readonly ways: readonly Way[];
}

/** How a permission is held: granted on the object itself wins over what is inherited. */
export function holdOf(ways: readonly Way[], permission: string): Hold {
  const found = ways.filter((way) => way.permission === permission && !way.isInside);
  if (found.length === 0) return "none";
  return found.some((way) => !way.isInherited) ? "here" : "inherited";
}

const wayKey = ({ permission, restrict, grant, on, groups, roles }: Way): string =>
  [permission, restrict, grant, on.kind, on.id, ...groups.map(({ id }) => id), "/", ...roles.map(({ id }) => id)].join(" ");

/** What a role gives, each once, with the roles that lead there. A circle of roles does no harm. */
function giftsOf(role: string, roles: readonly Role[]): readonly { readonly granted: Granted; readonly way: readonly Named[] }[] {
  const known = new Map(roles.map((one) => [one.id, one]));
  const named = (id: string): Named => ({ id, name: known.get(id)?.name ?? id });
  const ways = reached(role, innerOf(roles.map(({ id, roles: inner }) => ({ id, inner }))));
  const seen = new Set<string>();
  return [...new Map<string, readonly string[]>([[role, []], ...ways])].flatMap(([id, way]) =>
    (known.get(id)?.permissions ?? [])
      .filter(({ permission, kind }) => seen.size < seen.add(`${permission} ${kind ?? ""}`).size)
      .map((granted) => ({ granted, way: [role, ...way].map(named) })),
  );
}

/** Whether a permission that is for one kind only is about an object of a kind. */
const isAbout = (restrict: string | null, kind: string): boolean =>
  restrict === null || restrict === kind || (restrict === "org_project" && kind === "project") || (restrict === "org_ai_secret" && kind === "ai_secret");

/** What a grant on an object gives, there or on what is in it. */
function waysOfGrant(grant: Grant, object: Way["on"], roles: readonly Role[]): readonly Way[] {
  const gifts =
    grant.role === null
      ? [{ granted: { permission: grant.permission ?? "", kind: grant.restrict }, way: [] }]
      : giftsOf(grant.role, roles);
  return gifts.map(({ granted, way }) => ({
    permission: granted.permission,
    restrict: granted.kind,
    on: object,
    isInherited: false,
    isInside: !isAbout(granted.kind, object.kind),
    groups: [],
    roles: way,
    grant: grant.id,
  }));
}

type Known = { readonly groups: readonly Group[]; readonly roles: readonly Role[]; readonly members: readonly Member[] };

/** Collects the ways of subjects, each once. */
class Subjects {
  private readonly found = new Map<string, { subject: Omit<Subject, "ways">; ways: Map<string, Way> }>();

  add(subject: Omit<Subject, "ways">, ways: readonly Way[]): void {
    const one = this.found.get(subject.id) ?? { subject, ways: new Map<string, Way>() };
    for (const way of ways) one.ways.set(wayKey(way), way);
    this.found.set(subject.id, one);
  }

  /** Groups first, then people, each by name. */
  sorted(): readonly Subject[] {
    const all = [...this.found.values()].map(({ subject, ways }) => ({ ...subject, ways: [...ways.values()] }));
    return all.sort((a, b) => Number(b.isGroup) - Number(a.isGroup) || byName(a, b));
  }
}

const asGroup = ({ id, name }: Named) => ({ id, name, detail: "group", isGroup: true });
const asPerson = (user: Member) => ({ id: user.id, name: user.name, detail: memberDetail(user), isGroup: false });

/**
 * Everybody with access, the groups through which people have it, and everybody to whom something is granted on the
 * object itself: perhaps only for what is in it, and to groups without people.
 */
export function subjectsOf(explanation: Explanation, grants: readonly Grant[], object: Way["on"], known: Known): readonly Subject[] {
  const subjects = new Subjects();
  for (const { user, ways } of explanation.people) {
    subjects.add(asPerson(user), ways);
    for (const way of ways) {
      for (const [index, group] of way.groups.entries()) {
        subjects.add(asGroup(group), [{ ...way, groups: way.groups.slice(index + 1) }]);
      }
    }
  }
  const groups = new Map(known.groups.map((one) => [one.id, one]));
  const members = new Map(known.members.map((one) => [one.id, one]));
  for (const grant of grants) {
    const group = groups.get(grant.group ?? "");
    const member = members.get(grant.user ?? "");
    const ways = waysOfGrant(grant, object, known.roles);
    if (group !== undefined) subjects.add(asGroup(group), ways);
    if (member !== undefined) subjects.add(asPerson(member), ways);
  }
  return subjects.sorted();
}

/** Ways that differ in the permission only, with all their permissions. */
export interface Chain {
  readonly permissions: readonly { readonly permission: string; readonly restrict: string | null }[];
  readonly way: Way;
}

export function chainsOf(ways: readonly Way[]): readonly Chain[] {
  const found = new Map<string, { permissions: { permission: string; restrict: string | null }[]; way: Way }>();
  for (const way of ways) {
    const key = wayKey({ ...way, permission: "", restrict: "" });
    const one = found.get(key) ?? { permissions: [], way };
    one.permissions.push({ permission: way.permission, restrict: way.restrict });
    found.set(key, one);
  }
  return [...found.values()].sort((a, b) => Number(a.way.isInherited) - Number(b.way.isInherited));
}

export const giftKey = ({ permission, restrict, role }: Gift): string =>
  role === null ? `${permission ?? ""} ${restrict ?? ""}` : `role ${role}`;

export const giftOf = (key: string): Gift => {
  const [first = "", second = ""] = key.split(" ");
  return first === "role"
    ? { permission: null, restrict: null, role: second }
    : { permission: first, restrict: second === "" ? null : second, role: null };
};

/** The keys of everything that can be granted: permissions for one kind or for all, then roles. */
export const plainKeys = (restrict: string | null): readonly string[] =>
  PERMISSIONS.map((permission) => giftKey({ permission, restrict, role: null }));

/** Whom something is granted to. */
export interface Grantee {
  readonly id: string;
  readonly isGroup: boolean;
}

/** What turns the gifts of somebody into others: what is taken comes first. */
export function changesOf(grantee: Grantee, before: ReadonlySet<string>, after: ReadonlySet<string>): readonly GrantChange[] {
  const to = { user: grantee.isGroup ? null : grantee.id, group: grantee.isGroup ? grantee.id : null };
  const taken = [...before].filter((key) => !after.has(key)).map((key) => ({ ...giftOf(key), ...to, isAdded: false }));
  const added = [...after].filter((key) => !before.has(key)).map((key) => ({ ...giftOf(key), ...to, isAdded: true }));
  return [...taken, ...added];
}

/** The grants on the object to one person or group, as keys of their gifts. */
export const giftsTo = (grantee: Grantee, grants: readonly Grant[]): ReadonlySet<string> =>
  new Set(grants.filter((grant) => (grantee.isGroup ? grant.group : grant.user) === grantee.id).map(giftKey));
