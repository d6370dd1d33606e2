// What a list and the trace that it opens tell each other: which trace, what of it is shown, and where to go next.

/** The kinds of objects whose rows are spans. */
export type SpanSourceKind = "project_logs" | "experiment" | "playground_logs";

/** The object whose rows a trace is made of. */
export interface SpanSource {
  readonly kind: SpanSourceKind;
  readonly id: string;
}

export const TRACE_LENSES = ["tree", "thread", "flame"] as const;

export type TraceLens = (typeof TRACE_LENSES)[number];

/** What of a trace is shown. An empty text means the default. */
export interface TraceView {
  /** The `span_id` of the selected span; empty for the root. */
  readonly span: string;
  /** The open tab of the detail. */
  readonly tab: string;
  /** What is looked for in the trace. */
  readonly find: string;
  readonly lens: TraceLens;
}

export const TRACE_VIEW: TraceView = { span: "", tab: "", find: "", lens: "tree" };

/** Properties of the panel that shows a trace beside a list, or as a page of its own. */
export interface TracePanelProps {
  readonly organization: string;
  readonly project: { readonly id: string; readonly name: string };
  readonly source: SpanSource;
  /** The `root_span_id` of the trace. */
  readonly root: string;
  readonly view: TraceView;
  readonly onView: (view: TraceView) => void;
  /** The version at which the trace is read, as a transaction id; empty for the newest. */
  readonly version: string;
  /** Shows another version; absent where a list has the version. */
  readonly onVersion?: (version: string) => void;
  /** Closes the panel; absent on a page of its own. */
  readonly onClose?: () => void;
  /** Goes to the next or previous trace of the list; absent without a list. */
  readonly onStep?: (by: 1 | -1) => void;
  /** Filters the list by an expression of a value; absent without a list. */
  readonly onFilter?: (expression: string) => void;
}
