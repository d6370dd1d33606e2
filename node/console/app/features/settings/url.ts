// The addresses of the sections about people: what is open, and which names are listed.
import { textParameter } from "../../lib/address";
import { pageAddress, type PagePlace } from "../../lib/pages";

export type PeopleSection = "members" | "groups" | "roles";

export interface PeopleState {
  /** The id of the member, group or role that is open; empty for none. */
  readonly open: string;
  /** What the listed names contain. */
  readonly filter: string;
}

export const readPeople = ({ rest, query }: PagePlace): PeopleState => ({
  open: rest[1] ?? "",
  filter: textParameter(query, "q"),
});

export const writePeople = (organization: string, section: PeopleSection, { open, filter }: PeopleState): string =>
  pageAddress("settings", organization, "", open === "" ? [section] : [section, open], [["q", filter, ""]]);
