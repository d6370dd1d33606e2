// The address of an organization's home.
import {
  choiceParameter,
  isReserved,
  organizationAddress,
  textParameter,
  type Codec,
} from "../../lib/address";

export const SORTS = ["newest", "name", "rows", "errors"] as const;

export type Sort = (typeof SORTS)[number];

export interface HomeState {
  readonly organization: string;
  /** What the names of the listed projects contain. */
  readonly filter: string;
  readonly sort: Sort;
  /** The name of the current project. */
  readonly row: string;
}

export const homeDefaults = (organization: string): HomeState => ({
  organization,
  filter: "",
  sort: "newest",
  row: "",
});

export const homeUrl: Codec<HomeState> = {
  read: ({ segments, rawFirst, query }) => {
    const [organization, ...rest] = segments;
    if (organization === undefined || rest.length > 0 || isReserved(rawFirst)) return null;
    return {
      organization,
      filter: textParameter(query, "q"),
      sort: choiceParameter(query, "sort", SORTS, "newest"),
      row: textParameter(query, "r"),
    };
  },
  write: ({ organization, filter, sort, row }) =>
    organizationAddress(organization, [], [
      ["q", filter, ""],
      ["sort", sort, "newest"],
      ["r", row, ""],
    ]),
};
