// The address of the section about access: which object or which person is asked about, and whose chain is open.
import { KINDS, type Kind } from "../../api/access";
import { choiceParameter, textParameter } from "../../lib/address";
import { pageAddress, type PagePlace } from "../../lib/pages";

export interface AccessState {
  readonly by: "object" | "person";
  readonly kind: Kind;
  /** The id of the object; empty for none, and for those kinds of which an organization has one. */
  readonly id: string;
  /** The id of the project that the object is in, for the choice of objects. */
  readonly project: string;
  /** The id of the person who is asked about. */
  readonly user: string;
  /** Whose access to the object is open: a person or a group. */
  readonly who: string;
}

export const ACCESS_DEFAULTS: AccessState = { by: "object", kind: "organization", id: "", project: "", user: "", who: "" };

const KIND_IDS = KINDS.map(([id]) => id);

export const readAccess = ({ query }: PagePlace): AccessState => ({
  by: choiceParameter(query, "by", ["object", "person"], "object"),
  kind: choiceParameter(query, "type", KIND_IDS, "organization"),
  id: textParameter(query, "id"),
  project: textParameter(query, "project"),
  user: textParameter(query, "user"),
  who: textParameter(query, "who"),
});

export const writeAccess = (organization: string, state: AccessState): string =>
  pageAddress("settings", organization, "", ["access"], [
    ["by", state.by, "object"],
    ["type", state.kind, "organization"],
    ["id", state.id, ""],
    ["project", state.project, ""],
    ["user", state.user, ""],
    ["who", state.who, ""],
  ]);
