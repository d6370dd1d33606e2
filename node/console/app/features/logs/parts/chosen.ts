// The rows that something is done with, and how they are called.
import type { LogRow } from "../../../api/rows";
import type { LogShape } from "../url";

export type BulkAction = "none" | "tag" | "score" | "assign" | "dataset" | "delete";

/** The rows that something is done with. */
export interface Chosen {
  readonly rows: readonly LogRow[];
  /** The keys of the rows, which are traces or spans. */
  readonly keys: readonly string[];
  readonly shape: LogShape;
}

export const countWords = (count: number, shape: LogShape): string => {
  const noun = shape === "traces" ? "trace" : "span";
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
};
