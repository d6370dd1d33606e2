// The addresses of the sections about credentials: which one, and what is filtered.
import { textParameter } from "../../lib/address";
import { pageAddress, type PagePlace } from "../../lib/pages";

export interface CredentialsState {
  readonly organization: string;
  readonly section: string;
  /** What the listed names contain. */
  readonly filter: string;
}

export const readCredentialsState = ({ organization, rest, query }: Pick<PagePlace, "organization" | "rest" | "query">): CredentialsState => ({
  organization,
  section: rest[0] ?? "keys",
  filter: textParameter(query, "q"),
});

export const credentialsAddress = ({ organization, section, filter }: CredentialsState): string =>
  pageAddress("settings", organization, "", [section], [["q", filter, ""]]);
