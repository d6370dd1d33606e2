// What differs between two texts, cut to what fits into a line.
import type { DiffPart } from "../../design/DiffWords";

const CONTEXT = 24;

/** Cuts what is the same down to a few letters beside each change, so that a line shows the changes. */
export function condensed(parts: readonly DiffPart[]): readonly DiffPart[] {
  const last = parts.length - 1;
  return parts.map((part, index) => {
    const { kind, text } = part;
    if (kind !== "same" || last === 0) return part;
    const head = index === 0 ? "" : text.slice(0, CONTEXT);
    const tail = index === last ? "" : text.slice(-CONTEXT);
    return text.length <= head.length + tail.length + 1 ? part : { kind, text: `${head}…${tail}` };
  });
}
