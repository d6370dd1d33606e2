// Chains and changes in words.
import { kindTitle, permissionWords, type GrantChange, type Origin, type Way } from "../../api/access";
import type { Chain } from "./rows";

/** The names that words need: of objects, people, groups and roles, by their ids. */
export type NameOf = (id: string) => string;

const ONE_OF_ITS_KIND = new Set(["organization", "org_project", "org_member", "org_audit_logs", "org_ai_secret"]);

/** An object in words. Of some kinds an organization has one, which needs no name besides. */
export function objectWords(on: Way["on"], nameOf: NameOf): string {
  const kind = kindTitle(on.kind).toLowerCase();
  if (on.kind === "organization") return `organization ${nameOf(on.id)}`;
  return ONE_OF_ITS_KIND.has(on.kind) ? kind : `${kind} ${nameOf(on.id)}`;
}

export const giftWords = (permission: string, restrict: string | null): string =>
  permissionWords(permission) + (restrict === null ? "" : ` (${kindTitle(restrict).toLowerCase()} only)`);

/** The steps of a chain, from what somebody may do to the object on which it was granted. */
export function chainSteps({ permissions, way }: Chain, nameOf: NameOf): readonly string[] {
  return [
    permissions.map(({ permission, restrict }) => giftWords(permission, restrict)).join(", "),
    ...way.groups.map(({ name }) => `group ${name}`),
    ...way.roles.map(({ name }) => `role ${name}`),
    objectWords(way.on, nameOf),
  ];
}

/** Who granted it and when, as far as it is known. */
export function originWords(origin: Origin | undefined, day: (at: string) => string): string {
  if (origin === undefined) return "";
  const when = origin.at === null ? "" : day(origin.at);
  if (origin.by !== null) return when === "" ? `by ${origin.by}` : `by ${origin.by}, ${when}`;
  return when === "" ? "" : `since ${when}`;
}

/** A change in words, such as `Ben: read`. */
export function changeWords(change: GrantChange, nameOf: NameOf): string {
  const who = nameOf(change.user ?? change.group ?? "");
  const what = change.role === null ? giftWords(change.permission ?? "", change.restrict) : `role ${nameOf(change.role)}`;
  return `${who}: ${what}`;
}
