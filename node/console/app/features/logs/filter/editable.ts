// Which conditions the editor of a chip can change. It stands alone, because every list needs it for its chips.
import { textWithin, type Condition, type Operator } from "../../../btql";

/** The operators that the editor offers with their opposites. */
const WITH_OPPOSITE: readonly Operator[] = ["in", "ilike", "match", "includes", "true", "like"];

/** Whether the editor has a choice for a condition. Others have to be changed as text. */
export function isEditable({ operator, isNegated, values }: Condition): boolean {
  if (operator === "ilike" && textWithin(String(values[0] ?? "")) === null) return false;
  return operator !== "search" && (!isNegated || WITH_OPPOSITE.includes(operator));
}
