// The addresses of a project's datasets and of one of them.
import { isReserved, organizationAddress, textParameter, type Codec } from "../../lib/address";

export interface DatasetsState {
  readonly organization: string;
  /** The name of the project. */
  readonly project: string;
  /** What the names of the listed datasets contain. */
  readonly filter: string;
  /** The name of the current dataset. */
  readonly row: string;
}

export interface DatasetState {
  readonly organization: string;
  readonly project: string;
  /** The name of the dataset. */
  readonly name: string;
  /** The version that is shown, in the form of `lib/version`; empty for now. */
  readonly version: string;
  /** The version that the shown one is compared with; empty for none. */
  readonly compare: string;
  /** The expression that rows fulfil; empty for all. */
  readonly filter: string;
  /** The id of the open row; empty for none. */
  readonly row: string;
}

export const datasetsDefaults = (organization: string, project: string): DatasetsState => ({
  organization,
  project,
  filter: "",
  row: "",
});

export const datasetDefaults = (organization: string, project: string, name: string): DatasetState => ({
  organization,
  project,
  name,
  version: "",
  compare: "",
  filter: "",
  row: "",
});

export const datasetsUrl: Codec<DatasetsState> = {
  read: ({ segments, rawFirst, query }) => {
    const [organization, p, project, word, ...rest] = segments;
    if (organization === undefined || project === undefined || isReserved(rawFirst)) return null;
    if (p !== "p" || word !== "datasets" || rest.length > 0) return null;
    return { organization, project, filter: textParameter(query, "q"), row: textParameter(query, "r") };
  },
  write: ({ organization, project, filter, row }) =>
    organizationAddress(organization, ["p", project, "datasets"], [
      ["q", filter, ""],
      ["r", row, ""],
    ]),
};

export const datasetUrl: Codec<DatasetState> = {
  read: ({ segments, rawFirst, query }) => {
    const [organization, p, project, word, name, ...rest] = segments;
    if (organization === undefined || project === undefined || name === undefined || isReserved(rawFirst)) return null;
    if (p !== "p" || word !== "datasets" || rest.length > 0) return null;
    return {
      organization,
      project,
      name,
      version: textParameter(query, "version"),
      compare: textParameter(query, "cmp"),
      filter: textParameter(query, "q"),
      row: textParameter(query, "r"),
    };
  },
  write: ({ organization, project, name, version, compare, filter, row }) =>
    organizationAddress(organization, ["p", project, "datasets", name], [
      ["version", version, ""],
      ["cmp", compare, ""],
      ["q", filter, ""],
      ["r", row, ""],
    ]),
};
