// The address of a trace's own page.
import { choiceParameter, isReserved, organizationAddress, textParameter, type Codec } from "../../lib/address";
import { TRACE_LENSES, TRACE_VIEW, type TraceView } from "../../lib/trace";

export interface TraceState {
  readonly organization: string;
  /** The name of the project. */
  readonly project: string;
  readonly root: string;
  /** The id of the experiment whose rows the trace is made of; empty for the project's logs. */
  readonly experiment: string;
  readonly view: TraceView;
  /** The transaction as of which is read; empty for the newest. */
  readonly version: string;
}

export const traceDefaults = (organization: string, project: string, root: string): TraceState => ({
  organization,
  project,
  root,
  experiment: "",
  view: TRACE_VIEW,
  version: "",
});

export const traceUrl: Codec<TraceState> = {
  read: ({ segments, rawFirst, query }) => {
    const [organization, word, project, screen, root, ...rest] = segments;
    if (organization === undefined || project === undefined || root === undefined) return null;
    if (word !== "p" || screen !== "trace" || rest.length > 0 || isReserved(rawFirst)) return null;
    return {
      organization,
      project,
      root,
      experiment: textParameter(query, "experiment"),
      view: {
        span: textParameter(query, "s"),
        tab: textParameter(query, "tab"),
        find: textParameter(query, "find"),
        lens: choiceParameter(query, "lens", TRACE_LENSES, TRACE_VIEW.lens),
      },
      version: textParameter(query, "version"),
    };
  },
  write: ({ organization, project, root, experiment, view, version }) =>
    organizationAddress(organization, ["p", project, "trace", root], [
      ["experiment", experiment, ""],
      ["s", view.span, ""],
      ["tab", view.tab, ""],
      ["find", view.find, ""],
      ["lens", view.lens, TRACE_VIEW.lens],
      ["version", version, ""],
    ]),
};
