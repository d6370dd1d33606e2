// Fields that are known, and how what is typed finds one among them.
import type { Scalar, Step } from "./tree";

export type FieldType = "string" | "number" | "boolean" | "object" | "array" | "time" | "unknown";

export interface KnownValue {
  readonly value: Scalar;
  readonly count: number;
}

/** A field that completion and chips know of. */
export interface KnownField {
  readonly path: readonly Step[];
  readonly type: FieldType;
  /** Likely values, the most frequent first. */
  readonly values: readonly KnownValue[];
}

/** A name without its quotes, in lower case. */
export const plain = (text: string): string => text.replaceAll(/[`"]/g, "").toLowerCase();

/** Those that contain what is typed, those that start with it first. Among equals the order stays. */
export function ranked<Item>(items: readonly Item[], typed: string, labelOf: (item: Item) => string): readonly Item[] {
  const wanted = plain(typed);
  if (wanted === "") return items;
  const groups: readonly Item[][] = [[], [], []];
  for (const item of items) {
    const label = plain(labelOf(item));
    const at = label.indexOf(wanted);
    if (at < 0) continue;
    const isAfterPoint = at > 0 && label.charAt(at - 1) === ".";
    groups[at === 0 ? 0 : isAfterPoint ? 1 : 2]?.push(item);
  }
  return groups.flat();
}
