// The address of the query editor: the query of the open tab, and how its result is shown.
import { choiceParameter, isReserved, organizationAddress, textParameter, type Codec } from "../../lib/address";

export const SYNTAXES = ["auto", "sql", "btql"] as const;

/** The syntax that completion goes by; `auto` follows the first word of the query, as the server does. */
export type Syntax = (typeof SYNTAXES)[number];

export const RESULT_TABS = ["table", "chart", "json", "plan"] as const;

export type ResultTab = (typeof RESULT_TABS)[number];

export interface QueryState {
  readonly organization: string;
  /** The text of the query; empty for a long one, which `view` names. */
  readonly text: string;
  /** The id of the record that has the query, if it is too long for an address; else empty. */
  readonly view: string;
  readonly syntax: Syntax;
  /** The chart's kind and axes, in the form of `chart.ts`; empty for what fits the result. */
  readonly chart: string;
  /** A moment or a transaction as of which rows are read; empty for now. */
  readonly version: string;
  readonly tab: ResultTab;
}

export const queryDefaults = (organization: string): QueryState => ({
  organization,
  text: "",
  view: "",
  syntax: "auto",
  chart: "",
  version: "",
  tab: "table",
});

export const queryUrl: Codec<QueryState> = {
  read: ({ segments, rawFirst, query }) => {
    const [organization, screen, ...rest] = segments;
    if (organization === undefined || screen !== "query" || rest.length > 0 || isReserved(rawFirst)) return null;
    return {
      organization,
      text: textParameter(query, "q"),
      view: textParameter(query, "v"),
      syntax: choiceParameter(query, "fmt", SYNTAXES, "auto"),
      chart: textParameter(query, "chart"),
      version: textParameter(query, "version"),
      tab: choiceParameter(query, "tab", RESULT_TABS, "table"),
    };
  },
  write: ({ organization, text, view, syntax, chart, version, tab }) =>
    organizationAddress(organization, ["query"], [
      ["q", text, ""],
      ["v", view, ""],
      ["fmt", syntax, "auto"],
      ["chart", chart, ""],
      ["version", version, ""],
      ["tab", tab, "table"],
    ]),
};
