// The rows that are explained, and the conditions that divide all rows of the list into them and the rest.
import { called, conjunction, createdWithin, list, negation } from "../../../btql/write";
import type { Bounds } from "../../../lib/range";
import type { RowShape } from "../../../btql";

export type Selection =
  | { readonly kind: "errors" }
  | { readonly kind: "time"; readonly bounds: Bounds }
  /** Rows by the ids of their traces, or of the spans. */
  | { readonly kind: "rows"; readonly ids: readonly string[] };

function conditionOf(selection: Selection, shape: RowShape): string {
  switch (selection.kind) {
    case "errors":
      return "error IS NOT NULL";
    case "time":
      return createdWithin(selection.bounds);
    case "rows":
      return `${shape === "traces" ? "root_span_id" : "id"} IN ${list(selection.ids)}`;
  }
}

/** The condition of the selected rows, and that of the others. Of traces, one of their spans fulfils it or none. */
export function dividedBy(selection: Selection, shape: RowShape): { readonly inside: string; readonly outside: string } {
  const condition = conditionOf(selection, shape);
  if (condition === "") return { inside: "true", outside: "false" };
  const inside = shape === "traces" ? called("any_span", condition) : conjunction([condition]);
  return { inside, outside: negation(inside) };
}

export const selectionKey = (selection: Selection): string => JSON.stringify(selection);
