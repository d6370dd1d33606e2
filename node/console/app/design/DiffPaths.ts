// Compares two JSON values path by path. Pure, and not recursive.
import { parseJson, printJson } from "../lib/json";
import { entriesOf, isMany, pathText, type Step } from "./JsonRows";

export interface PathChange {
  readonly path: string;
  readonly kind: "added" | "removed" | "changed";
  readonly before: string;
  readonly after: string;
}

/** The most changes that are looked for. */
export const CHANGES_MAX = 500;

type Pair = readonly [path: readonly Step[], before: unknown, after: unknown];

const isAlike = (one: unknown, other: unknown): boolean =>
  isMany(one) && isMany(other) && Array.isArray(one) === Array.isArray(other);

/** What is below two objects or two lists, by key or index; absent values are undefined. */
function pairsBelow([path, before, after]: Pair): readonly Pair[] {
  const [from, to] = [before, after].map((value) => new Map(isMany(value) ? entriesOf(value) : []));
  const steps = new Set([...(from?.keys() ?? []), ...(to?.keys() ?? [])]);
  return [...steps].map((step) => [[...path, step], from?.get(step), to?.get(step)]);
}

function changeOf([path, before, after]: Pair): PathChange | null {
  const kind = before === undefined ? "added" : after === undefined ? "removed" : "changed";
  const [from, to] = [before, after].map((value) => (value === undefined ? "" : printJson(value, 0)));
  return from === to ? null : { path: pathText(path), kind, before: from ?? "", after: to ?? "" };
}

/** The changes from one value to another, in the order of the paths. */
export function pathChanges(before: unknown, after: unknown): readonly PathChange[] {
  const changes: PathChange[] = [];
  const open: Pair[] = [[[], before, after]];
  for (let pair = open.pop(); pair !== undefined && changes.length < CHANGES_MAX; pair = open.pop()) {
    if (isAlike(pair[1], pair[2])) {
      open.push(...[...pairsBelow(pair)].reverse());
      continue;
    }
    const change = changeOf(pair);
    if (change !== null) changes.push(change);
  }
  return changes;
}

/** The changes between two texts, if both are objects or lists in JSON; null otherwise. */
export function pathChangesOf(before: string, after: string): readonly PathChange[] | null {
  if (![before, after].every((text) => /^\s*[[{]/.test(text))) return null;
  try {
    const [from, to] = [parseJson(before), parseJson(after)];
    return isAlike(from, to) ? pathChanges(from, to) : null;
  } catch {
    return null;
  }
}

/** How a value stands in a line of a change. */
export const shortened = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text);
