// What keys do in the tree: they move the selection and fold.
import type { Line } from "../tree/lines";
import type { OpenTrace } from "../useTrace";

type Tree = Pick<OpenTrace, "lines" | "selected" | "select" | "fold">;

/** Goes a level in: it unfolds, or goes to the first line below. */
function inward(tree: Tree, line: Line | undefined, go: (to: number) => void, at: number): void {
  if (line === undefined || !line.hasBelow) return;
  if (line.isFolded) tree.fold(line, false);
  else go(at + 1);
}

/** Goes a level out: it folds, or goes to the line above. */
function outward(tree: Tree, line: Line | undefined, go: (to: number) => void, at: number): void {
  if (line === undefined) return;
  if (line.hasBelow && !line.isFolded) tree.fold(line, true);
  else go(Math.max(tree.lines.findLastIndex((other, place) => place < at && other.depth < line.depth), 0));
}

/** Does what a key is for. Returns whether it is one of the tree's keys. */
export function pressed(key: string, tree: Tree, page: number): boolean {
  const { lines } = tree;
  const at = lines.findIndex((line) => line.span === tree.selected || line.others.includes(tree.selected));
  const go = (to: number): void => {
    const target = lines[Math.min(Math.max(to, 0), lines.length - 1)];
    if (target !== undefined) tree.select(target.span);
  };
  const moves: Readonly<Record<string, () => void>> = {
    ArrowDown: () => go(at + 1),
    j: () => go(at + 1),
    ArrowUp: () => go(at - 1),
    k: () => go(at - 1),
    PageDown: () => go(at + page),
    PageUp: () => go(at - page),
    Home: () => go(0),
    End: () => go(lines.length - 1),
    ArrowRight: () => inward(tree, lines[at], go, at),
    l: () => inward(tree, lines[at], go, at),
    ArrowLeft: () => outward(tree, lines[at], go, at),
    h: () => outward(tree, lines[at], go, at),
  };
  const move = Object.hasOwn(moves, key) ? moves[key] : undefined;
  move?.();
  return move !== undefined;
}
