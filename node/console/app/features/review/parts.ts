// Parts of other features that the frame hands over.
import type { ComponentType } from "react";
import type { Fields } from "../../api/narrow";
import type { SpanPlace } from "../../api/spans";
import type { SpanSource, TracePanelProps } from "../../lib/trace";

/** The bar that shows a filter as chips or as text. */
export interface FilterProps {
  readonly scope: {
    readonly organization: string;
    readonly source: SpanSource;
    readonly shape: "traces" | "spans";
    readonly bounds: { readonly from: string | null; readonly to: string | null };
    readonly filter: string;
  };
  readonly onChange: (filter: string) => void;
}

export interface Parts {
  readonly FilterBar: ComponentType<FilterProps>;
  readonly TracePanel: ComponentType<TracePanelProps>;
  /** The contents of a span, rendered for reading. */
  readonly Contents: ComponentType<{ readonly place: SpanPlace; readonly row: Fields }>;
}
