// The address of the audit log: what is filtered, and which entry is open.
import { textParameter, type Parameter } from "../../lib/address";
import { pageAddress, type PagePlace } from "../../lib/pages";
import { readRange } from "../../lib/range";

export interface AuditState {
  readonly organization: string;
  /** The id of a person, or the type of another actor; empty for all. */
  readonly who: string;
  readonly action: string;
  /** The kind of object. */
  readonly kind: string;
  /** A part of the object's name, or an id. */
  readonly object: string;
  readonly range: string;
  /** The number of the open entry; 0 for none. */
  readonly entry: number;
}

const RANGE = "all";

/** The number of an entry that a text names; 0 for any other text. */
const numberOf = (text: string): number => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0);

export function readAuditState({ organization, query }: Pick<PagePlace, "organization" | "query">): AuditState {
  const range = textParameter(query, "t", RANGE);
  return {
    organization,
    who: textParameter(query, "who"),
    action: textParameter(query, "action"),
    kind: textParameter(query, "kind"),
    object: textParameter(query, "q"),
    range: readRange(range) === null ? RANGE : range,
    entry: numberOf(textParameter(query, "r")),
  };
}

export function auditAddress(state: AuditState): string {
  const parameters: readonly Parameter[] = [
    ["t", state.range, RANGE],
    ["who", state.who, ""],
    ["action", state.action, ""],
    ["kind", state.kind, ""],
    ["q", state.object, ""],
    ["r", String(state.entry), "0"],
  ];
  return pageAddress("settings", state.organization, "", ["audit"], parameters);
}

export const isFiltered = ({ who, action, kind, object, range }: AuditState): boolean =>
  [who, action, kind, object].some((part) => part !== "") || range !== RANGE;
