// Finds keys and values in a JSON value, and says what has to be open to show them. Pure, and not recursive.
import { printJson } from "../lib/json";
import { DEPTH_MAX, embeddedIn, entriesOf, idOf, isMany, wordOf, type Embedded, type Opened, type Step } from "./JsonRows";

/** The most places that a search returns. */
export const FOUND_MAX = 1000;

/** What a search looks into: the value itself, or what a text says that is shown as JSON. */
function searched(path: readonly Step[], value: unknown, embedded: Embedded): object | null {
  if (path.length >= DEPTH_MAX) return null;
  if (isMany(value)) return value;
  return typeof value === "string" && embedded.has(idOf(path)) ? embeddedIn(value) : null;
}

/** Returns the paths of keys and values that have some words, in the order of the rows. */
export function pathsWith(value: unknown, words: string, embedded: Embedded = new Set()): readonly (readonly Step[])[] {
  const sought = words.toLowerCase();
  if (sought === "") return [];
  const found: (readonly Step[])[] = [];
  const open: (readonly [path: readonly Step[], value: unknown])[] = [[[], value]];
  for (let next = open.pop(); next !== undefined && found.length < FOUND_MAX; next = open.pop()) {
    const [path, one] = next;
    const isNamed = String(path.at(-1) ?? "").toLowerCase().includes(sought);
    const inside = searched(path, one, embedded);
    const own = inside !== null ? "" : isMany(one) ? printJson(one, 0) : wordOf(one);
    if (isNamed || own.toLowerCase().includes(sought)) found.push(path);
    if (inside === null) continue;
    const entries = entriesOf(inside);
    for (let at = entries.length - 1; at >= 0; at -= 1) {
      const [step, inner] = entries[at] ?? ["", null];
      open.push([[...path, step], inner]);
    }
  }
  return found;
}

/** What is open so that a path is shown. */
export function openedTo(opened: Opened, path: readonly Step[]): Opened {
  const next = new Map(opened);
  for (let length = 0; length < path.length; length += 1) next.set(idOf(path.slice(0, length)), true);
  return next;
}
