// The address of a project's experiments.
import { isReserved, organizationAddress, textParameter, type Codec } from "../../lib/address";

export interface ExperimentsState {
  readonly organization: string;
  /** The name of the project. */
  readonly project: string;
  /** What the names, tags, commits and metadata of the listed experiments contain. */
  readonly filter: string;
  /** The id of the column that sorts, after `-` if the greatest come first; empty for the newest first. */
  readonly sort: string;
  /** The score that is drawn over time; empty for the first one. */
  readonly score: string;
  /** The version as of which rows are counted, in the form of `lib/version`; empty for now. */
  readonly version: string;
  /** The name of the current experiment. */
  readonly row: string;
}

export const experimentsDefaults = (organization: string, project: string): ExperimentsState => ({
  organization,
  project,
  filter: "",
  sort: "",
  score: "",
  version: "",
  row: "",
});

export const experimentsUrl: Codec<ExperimentsState> = {
  read: ({ segments, rawFirst, query }) => {
    const [organization, p, project, word, ...rest] = segments;
    if (organization === undefined || project === undefined || isReserved(rawFirst)) return null;
    if (p !== "p" || word !== "experiments" || rest.length > 0) return null;
    return {
      organization,
      project,
      filter: textParameter(query, "q"),
      sort: textParameter(query, "sort"),
      score: textParameter(query, "score"),
      version: textParameter(query, "version"),
      row: textParameter(query, "r"),
    };
  },
  write: ({ organization, project, filter, sort, score, version, row }) =>
    organizationAddress(organization, ["p", project, "experiments"], [
      ["q", filter, ""],
      ["sort", sort, ""],
      ["score", score, ""],
      ["version", version, ""],
      ["r", row, ""],
    ]),
};
