// Positions of scores in the form of LexoRank: texts such as `0|i00000:`, whose order is that of the scores.

const BASE = 36;
const DIGITS = 6;

/** Positions for a list, in order and with room between them. */
function spread(count: number): readonly string[] {
  const step = Math.floor(BASE ** DIGITS / (count + 1));
  return Array.from({ length: count }, (_, index) => `0|${((index + 1) * step).toString(BASE).padStart(DIGITS, "0")}:`);
}

interface Placed {
  readonly id: string;
  readonly position: string | null;
}

/** The positions to write so that one element of a list comes to another place. Those that stay are left out. */
export function moved(placed: readonly Placed[], from: number, to: number): readonly { readonly id: string; readonly position: string }[] {
  const one = placed[from];
  if (one === undefined || to < 0 || to >= placed.length) return [];
  const others = placed.filter((_, index) => index !== from);
  const positions = spread(placed.length);
  return [...others.slice(0, to), one, ...others.slice(to)].flatMap(({ id, position: before }, index) => {
    const position = positions[index] ?? "";
    return position === before ? [] : [{ id, position }];
  });
}
