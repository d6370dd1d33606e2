// Turns the writes to a row into what each of them changed, and finds who gave each score.
import { userIn, type RowEvent } from "../../../api/history";
import { isRecord, textOrNull, type Fields } from "../../../api/narrow";
import { Exact, printJson } from "../../../lib/json";
import { transactionAt } from "../../../lib/version";

export interface Change {
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

export interface HistoryEntry {
  readonly event: RowEvent;
  readonly changes: readonly Change[];
}

/** The fields that people see as the content of a row, in the order in which changes are shown. */
const FIELDS = ["input", "output", "expected", "error", "scores", "tags", "metadata", "metrics", "span_attributes", "origin"] as const;

const isObject = (value: unknown): value is Fields => isRecord(value) && !(value instanceof Exact);

/** A value with another one merged into it: key by key where both are objects. */
function merged(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return after;
  const all = new Map(Object.entries(before));
  for (const [key, value] of Object.entries(after)) all.set(key, merged(all.get(key), value));
  return Object.fromEntries(all);
}

const isSame = (one: unknown, other: unknown): boolean => printJson(one ?? null, 0) === printJson(other ?? null, 0);

/** Scores and metadata change key by key; other fields change as a whole. */
const BY_KEY: ReadonlySet<string> = new Set(["scores", "metadata", "metrics"]);

function changesOf(field: string, before: unknown, after: unknown): readonly Change[] {
  if (isSame(before, after)) return [];
  if (!BY_KEY.has(field) || !(isObject(before) || isObject(after))) return [{ field, before, after }];
  const [from, to] = [isObject(before) ? before : {}, isObject(after) ? after : {}];
  const keys = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  return keys
    .filter((key) => !isSame(from[key], to[key]))
    .map((key) => ({ field: `${field}.${key}`, before: from[key], after: to[key] }));
}

/** What a write leaves of a field. A merge does not touch a field that it has no value for. */
function afterEvent({ action, columns }: RowEvent, field: string, before: unknown): unknown {
  const written = columns[field] ?? null;
  if (action === "delete") return null;
  if (action !== "merge") return written;
  return written === null ? before : merged(before, written);
}

/** The comments of a row. */
export const commentsOf = (row: Fields): readonly Fields[] =>
  Array.isArray(row["comments"]) ? row["comments"].filter(isRecord) : [];

export function textOfComment(comment: Fields): string {
  const inner = comment["comment"];
  const text = isRecord(inner) ? inner["text"] : inner;
  return typeof text === "string" ? text : JSON.stringify(comment);
}

/** Comments as entries of the history: they are rows of their own, so that they are not among the writes to the row. */
const commentEntries = (comments: readonly Fields[]): readonly HistoryEntry[] =>
  comments.map((comment) => {
    // One that was sent a moment ago has no transaction yet.
    const made = new Date(textOrNull(comment, "created") ?? 0);
    const transaction = textOrNull(comment, "_xact_id") ?? transactionAt(made);
    const source = textOrNull(comment, "source") ?? "";
    const event = { transaction, action: "comment", source, userId: userIn(comment["metadata"]), columns: comment };
    return { event, changes: [{ field: "comment", before: null, after: textOfComment(comment) }] };
  });

/** Orders transaction ids, which are numbers of up to 20 digits, the newest first. */
const byNewest = (a: HistoryEntry, b: HistoryEntry): number =>
  b.event.transaction.padStart(20, "0").localeCompare(a.event.transaction.padStart(20, "0"), "en");

/** The history of a row with its comments, the newest first. */
export function historyOf(events: readonly RowEvent[], comments: readonly Fields[] = []): readonly HistoryEntry[] {
  const state = new Map<string, unknown>();
  const entries = [...events].reverse().map((event): HistoryEntry => {
    const changes = FIELDS.flatMap((field) => {
      const before = state.get(field) ?? null;
      const after = afterEvent(event, field, before);
      state.set(field, after);
      return changesOf(field, before, after);
    });
    return { event, changes };
  });
  return [...entries.reverse(), ...commentEntries(comments)].sort(byNewest);
}

/** The newest write of each score, by the name of the score. */
export function scoreEvents(events: readonly RowEvent[]): ReadonlyMap<string, RowEvent> {
  const found = new Map<string, RowEvent>();
  for (const event of events) {
    const scores = event.columns["scores"];
    if (!isObject(scores)) continue;
    for (const name of Object.keys(scores)) if (!found.has(name)) found.set(name, event);
  }
  return found;
}

const SOURCES: Readonly<Record<string, string>> = { app: "in the console", api: "by the API", external: "from outside" };

/** Where a write came from, in words; empty if that is not known. */
export const sourceWords = (source: string): string =>
  source === "" ? "" : (SOURCES[source] ?? `from ${source}`);

const ACTIONS: Readonly<Record<string, string>> = { upsert: "Written", insert: "Written", merge: "Changed", delete: "Deleted", comment: "Commented" };

export const actionWords = (action: string): string => ACTIONS[action] ?? "Written";
