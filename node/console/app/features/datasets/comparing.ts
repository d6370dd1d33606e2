// What differs between two versions of a dataset.
import type { DatasetRow } from "../../api/datasets";
import { isRecord } from "../../api/narrow";
import { FIELDS, isSame, type Field } from "./cells";

export const CHANGES = ["added", "removed", "changed"] as const;

export type Change = (typeof CHANGES)[number];

export interface ChangedRow {
  readonly id: string;
  readonly change: Change;
}

export interface Comparison {
  readonly rows: readonly ChangedRow[];
  readonly counts: Readonly<Record<Change, number>>;
  /** The number of rows that nobody wrote between the versions. */
  readonly same: number;
}

/** Compares by the transactions that wrote the rows: one that is the same wrote the same row. */
export function comparison(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): Comparison {
  const rows: ChangedRow[] = [];
  let same = 0;
  for (const [id, transaction] of after) {
    const known = before.get(id);
    if (known === undefined) rows.push({ id, change: "added" });
    else if (known !== transaction) rows.push({ id, change: "changed" });
    else same += 1;
  }
  for (const id of before.keys()) if (!after.has(id)) rows.push({ id, change: "removed" });
  const count = (change: Change): number => rows.filter((row) => row.change === change).length;
  return { rows, same, counts: { added: count("added"), removed: count("removed"), changed: count("changed") } };
}

export interface FieldDifference {
  readonly field: Field;
  /** The value before; undefined if there was no row. */
  readonly before: unknown;
  readonly after: unknown;
  /** The paths at which objects and lists differ; empty for other values. */
  readonly paths: readonly PathDifference[];
}

export interface PathDifference {
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

const MOST_PATHS = 200;

const stepOf = (key: string): string => (/^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`);

interface Pair {
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** The pairs below a pair of objects or of lists; null for other values. */
function inner({ path, before, after }: Pair): readonly Pair[] | null {
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, index) => ({ path: `${path}[${index}]`, before: before[index], after: after[index] }));
  }
  if (!isRecord(before) || !isRecord(after)) return null;
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return keys.map((key) => ({
    path: path + stepOf(key),
    before: Object.hasOwn(before, key) ? before[key] : undefined,
    after: Object.hasOwn(after, key) ? after[key] : undefined,
  }));
}

/** The paths at which two values differ, as deep as both have objects or lists. */
export function pathDifferences(before: unknown, after: unknown): readonly PathDifference[] {
  const found: PathDifference[] = [];
  const open: Pair[] = [{ path: "", before, after }];
  for (let pair = open.pop(); pair !== undefined && found.length < MOST_PATHS; pair = open.pop()) {
    if (pair.before === undefined || pair.after === undefined || !isSame(pair.before, pair.after)) {
      const below = inner(pair);
      if (below === null) found.push(pair);
      else open.push(...[...below].reverse());
    }
  }
  return found.filter(({ path, before: a, after: b }) => path !== "" && (a !== undefined || b !== undefined));
}

/** The fields in which two states of a row differ. */
export function fieldDifferences(before: DatasetRow | undefined, after: DatasetRow | undefined): readonly FieldDifference[] {
  return FIELDS.flatMap((field): readonly FieldDifference[] => {
    const [a, b] = [before?.[field], after?.[field]];
    const isAbsent = (a ?? null) === null && (b ?? null) === null;
    if (isAbsent || (before !== undefined && after !== undefined && isSame(a, b))) return [];
    const paths = before === undefined || after === undefined ? [] : pathDifferences(a, b);
    return [{ field, before: a, after: b, paths }];
  });
}
