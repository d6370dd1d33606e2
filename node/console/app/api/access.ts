// Who may do what on an object, through which grants, and how grants are changed.
import { queryOptions } from "@tanstack/react-query";
import { call } from "./client";
import { ApiError } from "../lib/errors";
import { flag, isRecord, list, record, text, textOrNull, type Fields } from "./narrow";
import { listAll, peopleChanged, readMember, type Member } from "./people";
import { called, columns, compared, ident, literal, runQuery } from "./query";

export const PERMISSIONS = [
  "create",
  "read",
  "update",
  "delete",
  "create_acls",
  "read_acls",
  "update_acls",
  "delete_acls",
] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** The kinds of objects that grants and permissions are about, with their names for people. */
export const KINDS = [
  ["organization", "Organization"],
  ["org_project", "All projects"],
  ["org_member", "Members"],
  ["org_audit_logs", "Audit log"],
  ["org_ai_secret", "All AI secrets"],
  ["project", "Project"],
  ["project_log", "Logs of a project"],
  ["experiment", "Experiment"],
  ["dataset", "Dataset"],
  ["prompt", "Prompt or function"],
  ["prompt_session", "Playground"],
  ["project_group", "Group of projects"],
  ["group", "Group"],
  ["role", "Role"],
  ["ai_secret", "AI secret"],
] as const;

export type Kind = (typeof KINDS)[number][0];

export const kindTitle = (kind: string): string => KINDS.find(([id]) => id === kind)?.[1] ?? kind;

/** A permission in words; those of grants are called after grants. */
export const permissionWords = (permission: string): string => permission.replace(/_acls$/, " grants");

export interface Named {
  readonly id: string;
  readonly name: string;
}

/** One way in which somebody has a permission. */
export interface Way {
  readonly permission: string;
  /** The only kind of objects that the permission is about; null for every kind. */
  readonly restrict: string | null;
  /** The object on which it was granted. */
  readonly on: { readonly kind: string; readonly id: string };
  readonly isInherited: boolean;
  /** Whether it is about things in the object only. */
  readonly isInside: boolean;
  /** The groups through which it comes, from the innermost to the one with the grant. */
  readonly groups: readonly Named[];
  /** The roles through which it comes, from the granted one inwards. */
  readonly roles: readonly Named[];
  /** The id of the grant, if it has one. */
  readonly grant: string | null;
}

export interface Explained {
  readonly user: Member;
  readonly ways: readonly Way[];
}

export interface Explanation {
  readonly people: readonly Explained[];
  readonly isTruncated: boolean;
  /** Whether the caller may ask about nobody else. */
  readonly isOwnOnly: boolean;
}

/** What a grant gives: one permission, perhaps for one kind of objects only, or one role. */
export interface Gift {
  readonly permission: string | null;
  readonly restrict: string | null;
  readonly role: string | null;
}

/** A grant on an object. */
export interface Grant extends Gift {
  readonly id: string;
  readonly user: string | null;
  readonly group: string | null;
}

function readNamed(value: unknown): readonly Named[] {
  return (Array.isArray(value) ? value : []).filter(isRecord).map((one) => {
    const id = text(one, "id");
    return { id, name: textOrNull(one, "name") ?? id };
  });
}

const readWay = (way: Fields): Way => ({
  permission: text(way, "permission"),
  restrict: textOrNull(way, "restrict_object_type"),
  on: { kind: text(way, "object_type"), id: text(way, "object_id") },
  isInherited: flag(way, "is_inherited"),
  isInside: false,
  groups: readNamed(way["groups"]),
  roles: readNamed(way["roles"]),
  grant: textOrNull(way, "acl_id"),
});

function readExplanation(value: unknown, isOwnOnly: boolean): Explanation {
  const answer = record(value, "access");
  const people = list(answer, "people").filter(isRecord).map((one) => ({
    user: readMember(record(one["user"], "user")),
    ways: list(one, "grants").filter(isRecord).map(readWay),
  }));
  return { people, isTruncated: flag(answer, "truncated"), isOwnOnly };
}

const isRefusal = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 403 || error.status === 404);

const pathOf = (kind: string, id: string, user?: string): string => {
  const asked = new URLSearchParams({ object_type: kind, object_id: id, ...(user === undefined ? {} : { user }) });
  return `/console/access?${asked.toString()}`;
};

/** Explains the access of everybody to an object, or of the caller alone if the rest is not shown to them. */
export const accessQuery = (organization: string, kind: string, id: string, caller: string) =>
  queryOptions({
    queryKey: ["access", organization, kind, id, caller],
    queryFn: async ({ signal }) => {
      const options = { organization, signal };
      try {
        return readExplanation(await call("GET", pathOf(kind, id), options), false);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        return readExplanation(await call("GET", pathOf(kind, id, caller), options), true);
      }
    },
    enabled: id !== "",
  });

/** The ways in which somebody has permissions on an object. None are known of an object that the caller cannot see. */
export async function waysOf(
  organization: string,
  object: { readonly kind: string; readonly id: string },
  user: string,
  signal: AbortSignal,
): Promise<readonly Way[]> {
  try {
    const answer = await call("GET", pathOf(object.kind, object.id, user), { organization, signal });
    return readExplanation(answer, false).people[0]?.ways ?? [];
  } catch (error) {
    if (isRefusal(error)) return [];
    throw error;
  }
}

/** What the caller may do on an object. */
export const rightsQuery = (organization: string, kind: string, id: string, caller: string) =>
  queryOptions({
    queryKey: ["access", organization, kind, id, caller, "rights"],
    queryFn: async ({ signal }): Promise<readonly string[]> =>
      (await waysOf(organization, { kind, id }, caller, signal)).map(({ permission }) => permission),
    staleTime: 60_000,
  });

const readGrant = (grant: Fields): Grant => ({
  id: text(grant, "id"),
  user: textOrNull(grant, "user_id"),
  group: textOrNull(grant, "group_id"),
  permission: textOrNull(grant, "permission"),
  restrict: textOrNull(grant, "restrict_object_type"),
  role: textOrNull(grant, "role_id"),
});

/** The grants on an object itself, as far as the caller may read them. */
export const grantsQuery = (organization: string, kind: string, id: string) =>
  queryOptions({
    queryKey: ["access", organization, kind, id, "grants"],
    queryFn: async ({ signal }): Promise<readonly Grant[]> => {
      const asked = new URLSearchParams({ object_type: kind, object_id: id });
      try {
        return (await listAll(`/v1/acl?${asked.toString()}`, organization, signal)).map(readGrant);
      } catch (error) {
        if (isRefusal(error)) return [];
        throw error;
      }
    },
    enabled: id !== "",
  });

/** Who granted something, and when. */
export interface Origin {
  readonly by: string | null;
  readonly at: string | null;
}

const AUTHORS = 200;

async function readAuthors(organization: string, organizationId: string, grants: readonly string[], signal: AbortSignal) {
  const page = await runQuery(
    organization,
    {
      select: columns("object_id", "actor", "created"),
      from: called("org_audit_logs", literal(organizationId)),
      filter: [
        compared("in", ident("object_id"), literal(grants)),
        compared("eq", ident("action"), literal("create")),
      ],
      limit: AUTHORS,
    },
    { signal },
  );
  return page.rows.map((row) => {
    const actor = isRecord(row["actor"]) ? row["actor"] : {};
    return [textOrNull(row, "object_id") ?? "", { by: textOrNull(actor, "user_email"), at: textOrNull(row, "created") }] as const;
  });
}

/** The origins of grants: from the audit log if the caller may read it, and else the times from the grants themselves. */
export const originsQuery = (organization: string, organizationId: string, grants: readonly string[]) =>
  queryOptions({
    queryKey: ["access", organization, "origins", grants],
    queryFn: async ({ signal }): Promise<ReadonlyMap<string, Origin>> => {
      const found = new Map<string, Origin>();
      try {
        for (const [id, origin] of await readAuthors(organization, organizationId, grants, signal)) found.set(id, origin);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
      }
      const rest = grants.filter((id) => !found.has(id));
      const read = async (id: string): Promise<void> => {
        try {
          const grant = record(await call("GET", `/v1/acl/${encodeURIComponent(id)}`, { organization, signal }), "grant");
          found.set(id, { by: null, at: textOrNull(grant, "created") });
        } catch (error) {
          if (!isRefusal(error)) throw error;
        }
      };
      await Promise.all(rest.map(read));
      return found;
    },
    enabled: grants.length > 0,
    staleTime: 300_000,
  });

/** Somebody or a group, with what is granted or taken on an object. */
export interface GrantChange extends Gift {
  readonly isAdded: boolean;
  readonly user: string | null;
  readonly group: string | null;
}

const sent = (object: { readonly kind: string; readonly id: string }, change: GrantChange): Fields => ({
  object_type: object.kind,
  object_id: object.id,
  user_id: change.user,
  group_id: change.group,
  permission: change.permission,
  restrict_object_type: change.restrict,
  role_id: change.role,
});

/** Carries changes out: one as such, several together or none of them. */
export async function changeGrants(
  organization: string,
  object: { readonly kind: string; readonly id: string },
  changes: readonly GrantChange[],
): Promise<void> {
  const [first] = changes;
  if (first === undefined) return;
  const of = (isAdded: boolean): readonly Fields[] =>
    changes.filter((change) => change.isAdded === isAdded).map((change) => sent(object, change));
  if (changes.length === 1) {
    await call(first.isAdded ? "POST" : "DELETE", "/v1/acl", { organization, body: sent(object, first) });
  } else {
    await call("POST", "/v1/acl/batch_update", { organization, body: { add_acls: of(true), remove_acls: of(false) } });
  }
  await peopleChanged(organization);
}
