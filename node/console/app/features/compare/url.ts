// The address of an experiment, and of its comparison with others.
import {
  choiceParameter,
  isReserved,
  MOST_IN_ADDRESS,
  organizationAddress,
  textParameter,
  type Codec,
} from "../../lib/address";

export const LAYOUTS = ["table", "grid", "summary"] as const;
export const SORTS = ["worst", "best", "low", "high", "key"] as const;
export const KINDS = ["all", "down", "up", "same", "new", "missing", "errors"] as const;
export const TABS = ["outputs", "trace"] as const;

export type Layout = (typeof LAYOUTS)[number];
export type Sort = (typeof SORTS)[number];
export type ShownKind = (typeof KINDS)[number];
export type Tab = (typeof TABS)[number];

export interface CompareState {
  readonly organization: string;
  /** The name of the project. */
  readonly project: string;
  /** The name or the id of the experiment that is looked at. */
  readonly name: string;
  /** The names or ids of the experiments that it is compared with; the first is the base. */
  readonly compared: readonly string[];
  /** Whether it is shown without a base, although there would be one. */
  readonly isAlone: boolean;
  readonly layout: Layout;
  /** Whether outputs show how they differ from the base. */
  readonly isDiff: boolean;
  /** The expression that rows fulfil; empty for all. A long one is kept in a record, which `view` names. */
  readonly filter: string;
  readonly view: string;
  /** The path whose values make groups; empty for none. */
  readonly group: string;
  readonly only: ShownKind;
  /** The score or metric that kinds and order are about; empty for the first score. */
  readonly score: string;
  readonly sort: Sort;
  /** The version that is shown, in the form of `lib/version`; empty for now. */
  readonly version: string;
  /** The id of a row of the open pair; empty for none. */
  readonly row: string;
  /** The selected span of the open pair's trace; empty for its root. */
  readonly span: string;
  readonly tab: Tab;
}

export const compareDefaults = (organization: string, project: string, name: string): CompareState => ({
  organization,
  project,
  name,
  compared: [],
  isAlone: false,
  layout: "table",
  isDiff: true,
  filter: "",
  view: "",
  group: "",
  only: "all",
  score: "",
  sort: "worst",
  version: "",
  row: "",
  span: "",
  tab: "outputs",
});

/** What the server compares at once, besides the experiment that is looked at. */
export const MOST_OTHERS = 7;

const namesOf = (query: URLSearchParams, name: string): readonly string[] =>
  [...new Set(query.getAll("c"))].filter((one) => one !== "" && one !== name).slice(0, MOST_OTHERS);

export const compareUrl: Codec<CompareState> = {
  read: ({ segments, rawFirst, query }) => {
    const [organization, p, project, word, name, ...rest] = segments;
    if (organization === undefined || project === undefined || name === undefined || isReserved(rawFirst)) return null;
    if (p !== "p" || word !== "experiments" || rest.length > 0) return null;
    const compared = namesOf(query, name);
    return {
      organization,
      project,
      name,
      compared,
      isAlone: compared.length === 0 && query.get("alone") === "1",
      layout: choiceParameter(query, "layout", LAYOUTS, "table"),
      isDiff: query.get("diff") !== "0",
      filter: textParameter(query, "q"),
      view: textParameter(query, "v"),
      group: textParameter(query, "g"),
      only: choiceParameter(query, "only", KINDS, "all"),
      score: textParameter(query, "score"),
      sort: choiceParameter(query, "sort", SORTS, "worst"),
      version: textParameter(query, "version"),
      row: textParameter(query, "r"),
      span: textParameter(query, "s"),
      tab: choiceParameter(query, "tab", TABS, "outputs"),
    };
  },
  write: (state) => {
    const { organization, project, name, compared, isAlone, layout, isDiff, filter, group, only, score, sort } = state;
    const isWithout = isAlone && compared.length === 0;
    return organizationAddress(organization, ["p", project, "experiments", name], [
      ...compared.map((one) => ["c", one, ""] as const),
      ["alone", isWithout ? "1" : "", ""],
      ["layout", layout, "table"],
      ["diff", isDiff ? "1" : "0", "1"],
      ["q", filter.length > MOST_IN_ADDRESS ? "" : filter, ""],
      ["v", state.view, ""],
      ["g", group, ""],
      ["only", only, "all"],
      ["score", score, ""],
      ["sort", sort, "worst"],
      ["version", state.version, ""],
      ["r", state.row, ""],
      ["s", state.span, ""],
      ["tab", state.tab, "outputs"],
    ]);
  },
};
