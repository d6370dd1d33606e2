// How an entry of the audit log is told: who, what, to which object, and what changed.
import type { Actor, AuditEntry } from "../../api/audit";
import { printJson } from "../../lib/json";
import type { Fault } from "./chain";

export type Names = ReadonlyMap<string, string>;

type Fields = Readonly<Record<string, unknown>>;

const KINDS: Readonly<Record<string, string>> = {
  acl: "grant",
  ai_secret: "AI secret",
  api_key: "API key",
  env_var: "environment variable",
  gateway_budget: "budget",
  org_automation: "automation",
  org_member: "member",
  project_automation: "automation",
};

const ACTIONS: Readonly<Record<string, string>> = { create: "Created", update: "Changed", delete: "Deleted" };

const plain = (word: string): string => word.replaceAll("_", " ");

const sentence = (words: string): string => words.slice(0, 1).toUpperCase() + words.slice(1);

export const kindWords = (kind: string): string => KINDS[kind] ?? plain(kind);

export const actionWords = (action: string): string => ACTIONS[action] ?? sentence(plain(action));

/** How an actor is called: a person by name or email, anything else by its type. */
export const actorWords = ({ type, userId, email }: Pick<Actor, "type" | "userId" | "email">, names: Names): string =>
  (userId === null ? null : (names.get(userId) ?? email ?? userId)) ?? sentence(plain(type));

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

const textAt = (fields: Fields, key: string): string | null => {
  const value = fields[key];
  return typeof value === "string" ? value : null;
};

/** What a change made of what; undefined where the entry does not keep it. */
export interface Change {
  readonly before: unknown;
  readonly after: unknown;
}

export function changeOf({ details }: AuditEntry): Change | null {
  if (!("before" in details) && !("after" in details)) return null;
  return { before: details["before"] ?? null, after: details["after"] ?? null };
}

/** The names of the fields that an entry says were changed; their values are not kept. */
export function changedNames({ details }: AuditEntry): readonly string[] | null {
  const { changed } = details;
  return Array.isArray(changed) ? changed.filter((name) => typeof name === "string") : null;
}

/** What an entry keeps besides fields before and after; null if that is nothing. */
export function otherDetails({ details }: AuditEntry): Fields | null {
  const others = Object.entries(details).filter(([key]) => !["before", "after", "changed"].includes(key));
  return others.length === 0 ? null : Object.fromEntries(others);
}

/** A grant in words: `read on project demo for ann@example.com`. */
function grantWords(grant: Fields, names: Names): string {
  const named = (key: string): string | null => {
    const id = textAt(grant, key);
    return id === null ? null : (names.get(id) ?? id);
  };
  const right = textAt(grant, "permission") ?? `role ${named("role_id") ?? ""}`;
  const object = `${kindWords(textAt(grant, "object_type") ?? "object")} ${named("object_id") ?? ""}`;
  const limit = textAt(grant, "restrict_object_type");
  const within = limit === null ? "" : `, ${kindWords(limit)} only`;
  return `${right} on ${object}${within} for ${named("user_id") ?? `group ${named("group_id") ?? ""}`}`;
}

const differing = (before: Fields, after: Fields): readonly string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => printJson(before[key] ?? null, 0) !== printJson(after[key] ?? null, 0),
  );

/** What changed, in a few words. */
export function changeWords(entry: AuditEntry, names: Names): string {
  const change = changeOf(entry);
  const subject = change?.after ?? change?.before;
  if (entry.objectType === "acl" && isFields(subject)) return grantWords(subject, names);
  if (isFields(change?.before) && isFields(change?.after)) return differing(change.before, change.after).map(plain).join(", ");
  return (changedNames(entry) ?? []).map(plain).join(", ");
}

/** The object of an entry: its name, or the name of its id. */
export const objectWords = ({ objectName, objectId }: AuditEntry, names: Names): string =>
  objectName ?? names.get(objectId) ?? "";

/** A fault of the chain in a sentence. */
export function faultWords({ kind, sequence, found }: Fault): string {
  switch (kind) {
    case "missing":
    case "misplaced":
      return `Entry #${sequence} is missing: ${found === null ? "one without a number" : `#${found}`} stands in its place.`;
    case "unlinked":
      return `Entry #${sequence} does not continue #${sequence - 1}: one of them was replaced.`;
    case "changed":
      return `Entry #${sequence} was changed after it was written.`;
    case "rewritten":
      return `Entry #${sequence} is not the one that was here before: the log was written again.`;
    case "cut":
      return `The log ends at #${sequence - 1}, but it had more entries before.`;
  }
}

/** The entry to look at for a fault; 0 if there is none. */
export const faultyEntry = ({ kind, sequence, found }: Fault): number => (kind === "cut" ? sequence - 1 : (found ?? 0));
