// The properties of the filter bar.
import type { Scope } from "./scope";

/** Opening something pushes an entry of the history; everything else replaces it. */
export type HowToGo = "push" | "replace";

/** Properties of the bar that shows `scope.filter` as chips or as text. */
export interface FilterBarProps {
  readonly scope: Scope;
  /** Takes another filter over, an expression or the empty text. */
  readonly onChange: (filter: string, how: HowToGo) => void;
}
