// The people of an organization: members, groups, roles and invitations, with the requests that read and change them.
import { queryOptions } from "@tanstack/react-query";
import { call, seenAs } from "./client";
import { problemOf } from "../lib/errors";
import { isRecord, list, record, text, textOrNull, type Fields } from "./narrow";
import { cache, peekSession, startAnew } from "./queries";
import { personName } from "./schema";

export interface Member {
  readonly id: string;
  /** The address of a person; a program has one that leads nowhere. */
  readonly email: string;
  readonly name: string;
  /** Whether this is the account of a program. */
  readonly isService: boolean;
  readonly created: string | null;
}

export interface Group {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  /** The ids of the people who are in the group themselves. */
  readonly users: readonly string[];
  /** The ids of the groups in it, which are never the group itself. */
  readonly groups: readonly string[];
  /** Whether the organization began with it. */
  readonly isBuiltIn: boolean;
}

/** A permission, and the only kind of objects that it is about; null for every kind. */
export interface Granted {
  readonly permission: string;
  readonly kind: string | null;
}

export interface Role {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly permissions: readonly Granted[];
  /** The ids of the roles in it. */
  readonly roles: readonly string[];
  /** Whether it belongs to the system, so that nobody changes it. */
  readonly isBuiltIn: boolean;
}

export interface Invitation {
  readonly id: string;
  readonly email: string;
  readonly groups: readonly string[];
  readonly invitedBy: string | null;
  readonly created: string | null;
}

/** An invitation of the person who is signed in. */
export interface OwnInvitation {
  readonly id: string;
  readonly organization: string;
  readonly invitedBy: string | null;
}

const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];

const objectsOf = (value: unknown): readonly Fields[] =>
  (Array.isArray(value) ? value : list(record(value, "list"), "objects")).filter(isRecord);

const PAGE = 1000;
const MOST_PAGES = 10;

/** Reads all objects of a list, page by page. No organization has more than ten pages of one kind by default. */
export async function listAll(path: string, organization: string, signal: AbortSignal): Promise<readonly Fields[]> {
  const all: Fields[] = [];
  const mark = path.includes("?") ? "&" : "?";
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const last = all.at(-1);
    const after = last === undefined ? "" : `&starting_after=${encodeURIComponent(text(last, "id"))}`;
    const objects = objectsOf(await call("GET", `${path}${mark}limit=${PAGE}${after}`, { organization, signal }));
    all.push(...objects);
    if (objects.length < PAGE) break;
  }
  return all;
}

const SERVICE = /@service\.[^@]*\.invalid$/;

export function readMember(user: Fields): Member {
  const email = textOrNull(user, "email") ?? "";
  const id = text(user, "id");
  const [givenName, familyName] = [textOrNull(user, "given_name"), textOrNull(user, "family_name")];
  return {
    id,
    email,
    name: personName({ id, email: email === "" ? null : email, givenName, familyName }),
    isService: SERVICE.test(email),
    created: textOrNull(user, "created"),
  };
}

function readGroup(group: Fields): Group {
  const id = text(group, "id");
  return {
    id,
    name: text(group, "name"),
    description: textOrNull(group, "description") ?? "",
    users: texts(group["member_users"]),
    groups: texts(group["member_groups"]).filter((one) => one !== id),
    isBuiltIn: group["user_id"] === null,
  };
}

function readRole(role: Fields): Role {
  const permissions = Array.isArray(role["member_permissions"]) ? role["member_permissions"].filter(isRecord) : [];
  return {
    id: text(role, "id"),
    name: text(role, "name"),
    description: textOrNull(role, "description") ?? "",
    permissions: permissions.map((one) => ({
      permission: text(one, "permission"),
      kind: textOrNull(one, "restrict_object_type"),
    })),
    roles: texts(role["member_roles"]).filter((one) => one !== role["id"]),
    isBuiltIn: role["org_id"] === null,
  };
}

const keyOf = (organization: string, what: string) => ["people", organization, what] as const;

const listed = <One>(organization: string, what: string, path: string, read: (fields: Fields) => One) =>
  queryOptions({
    queryKey: keyOf(organization, what),
    queryFn: async ({ signal }) => (await listAll(path, organization, signal)).map(read),
  });

export const membersQuery = (organization: string) => listed(organization, "members", "/v1/user", readMember);
export const groupsQuery = (organization: string) => listed(organization, "groups", "/v1/group", readGroup);
export const rolesQuery = (organization: string) => listed(organization, "roles", "/v1/role", readRole);

/** The invitations that nobody has answered yet. The server shows them to whoever may invite. */
export const invitationsQuery = (organization: string) =>
  queryOptions({
    queryKey: keyOf(organization, "invitations"),
    queryFn: async ({ signal }) =>
      objectsOf(await call("GET", "/v1/organization/invitations", { organization, signal })).map(
        (one): Invitation => ({
          id: text(one, "id"),
          email: text(one, "email"),
          groups: texts(one["group_ids"]),
          invitedBy: textOrNull(one, "invited_by"),
          created: textOrNull(one, "created"),
        }),
      ),
  });

/** The invitations of the person who is signed in, to any organization. */
export const ownInvitationsQuery = (person: string) =>
  queryOptions({
    queryKey: ["own-invitations", person],
    queryFn: async ({ signal }) =>
      objectsOf(await call("GET", "/v1/invitation", { signal })).map(
        (one): OwnInvitation => ({
          id: text(one, "id"),
          organization: textOrNull(one, "org_name") ?? textOrNull(one, "org_id") ?? "",
          invitedBy: textOrNull(one, "invited_by"),
        }),
      ),
  });

/** Reads everything about people and access again. */
export async function peopleChanged(organization: string): Promise<void> {
  await Promise.all([
    cache.invalidateQueries({ queryKey: ["people", organization] }),
    cache.invalidateQueries({ queryKey: ["access", organization] }),
  ]);
}

async function changed(method: "POST" | "PATCH" | "DELETE", path: string, organization: string, body?: Fields): Promise<unknown> {
  const answer = await call(method, path, { organization, ...(body === undefined ? {} : { body }) });
  await peopleChanged(organization);
  return answer;
}

/** Invites people by their addresses into groups. Somebody who belongs nowhere else is a member at once. */
export const invite = (organization: string, emails: readonly string[], groups: readonly string[]): Promise<unknown> =>
  changed("PATCH", "/v1/organization/members", organization, {
    invite_users: { emails, send_invite_emails: false, ...(groups.length === 0 ? {} : { group_ids: groups }) },
  });

/** Removes a member, or withdraws an invitation. */
export const removeMember = (organization: string, id: string): Promise<unknown> =>
  changed("PATCH", "/v1/organization/members", organization, { remove_users: { ids: [id] } });

export async function answerInvitation(id: string, answer: "accept" | "decline"): Promise<void> {
  await call("POST", `/v1/invitation/${encodeURIComponent(id)}/${answer}`, { body: {} });
  await cache.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] === "own-invitations" || queryKey[0] === "session" });
}

type What = "group" | "role";

const pathOf = (what: What, id: string): string => `/v1/${what}/${encodeURIComponent(id)}`;

/** Makes a group or a role and returns its id. */
export async function make(what: What, organization: string, name: string, description: string): Promise<string> {
  const body = { name, ...(description === "" ? {} : { description }) };
  return text(record(await changed("POST", `/v1/${what}`, organization, body), what), "id");
}

export const describe = (what: What, organization: string, id: string, name: string, description: string): Promise<unknown> =>
  changed("PATCH", pathOf(what, id), organization, { name, description });

export const remove = (what: What, organization: string, id: string): Promise<unknown> =>
  changed("DELETE", pathOf(what, id), organization);

/** Adds somebody to a group or takes them out of it. */
export const changeGroup = (
  organization: string,
  id: string,
  how: "add" | "remove",
  kind: "users" | "groups",
  members: readonly string[],
): Promise<unknown> => changed("PATCH", pathOf("group", id), organization, { [`${how}_member_${kind}`]: members });

/** What a change adds to a role and takes from it. */
export interface RoleChange {
  readonly added: readonly Granted[];
  readonly removed: readonly Granted[];
  readonly addedRoles: readonly string[];
  readonly removedRoles: readonly string[];
}

const sent = ({ permission, kind }: Granted): Fields => ({ permission, restrict_object_type: kind });

export const changeRole = (organization: string, id: string, change: RoleChange): Promise<unknown> =>
  changed("PATCH", pathOf("role", id), organization, {
    add_member_permissions: change.added.map(sent),
    remove_member_permissions: change.removed.map(sent),
    add_member_roles: change.addedRoles,
    remove_member_roles: change.removedRoles,
  });

/** The role of the system that its owners hold on an organization. */
export const OWNER_ROLE = "a55a0001-0000-4000-8000-000000000001";

/** The order of names in lists. */
export const byName = (a: { readonly name: string }, b: { readonly name: string }): number =>
  a.name.localeCompare(b.name, "en", { numeric: true, sensitivity: "base" });

/** What stands beside the name of a member: programs have addresses that say nothing. */
export const memberDetail = ({ isService, email, name }: Member): string =>
  isService ? "service account" : email === name ? "" : email;

/** The set with a key more, or less if it is there. */
export function toggled(set: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

/** Runs a change and returns what went wrong, in the server's words, or null. */
export async function faultOf(change: Promise<unknown>): Promise<string | null> {
  try {
    await change;
    return null;
  } catch (error) {
    return problemOf(error, 0).text;
  }
}

/**
 * Shows the console as somebody else sees it, until it is ended or the page is closed. Returns the server's words if the
 * server refuses that.
 */
export async function seeAs({ id, name }: Member, whenSeen: () => void): Promise<string | null> {
  seenAs.value = { id, name };
  const fault = await faultOf(peekSession(new AbortController().signal));
  if (fault === null) whenSeen();
  else seenAs.value = null;
  await startAnew();
  return fault;
}
