// The properties of the histogram.
import type { Bounds } from "../../../lib/range";
import type { Scope } from "../filter/scope";

export interface HistogramProps {
  readonly scope: Scope;
  /** Takes a range over, in the form of `lib/range`. */
  readonly onRange: (range: string) => void;
  /** Explains what is particular about the rows within some bounds; absent where that is not offered. */
  readonly onExplain?: (bounds: Bounds) => void;
}
