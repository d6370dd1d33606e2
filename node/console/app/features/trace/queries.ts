// The requests of a trace: its spans, those that arrive while it runs, one span in full, and what contents have.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call } from "../../api/client";
import { isRecord, list, record, textOrNull } from "../../api/narrow";
import { cache } from "../../api/queries";
import { findSpans, readSpan, readSpans, readSpansSince, type SpanHead, type SpanPlace } from "../../api/spans";
import type { SpanSourceKind } from "../../lib/trace";

const keyOf = (place: SpanPlace) =>
  ["trace", place.organization, place.source.kind, place.source.id, place.root, place.version] as const;

export const spansQuery = (place: SpanPlace) =>
  queryOptions({
    queryKey: keyOf(place),
    queryFn: ({ signal }) => readSpans(place, { signal }),
    staleTime: 30_000,
    structuralSharing: false,
  });

/** How many spans are kept in full, and about how much of memory they may take, in letters of JSON. */
const KEPT_SPANS = 200;
const KEPT_LETTERS = 64 * 1024 * 1024;

/** The sizes of the spans that were read in full, by their keys, the one read last at the end. */
const sizes = new Map<string, { readonly key: readonly unknown[]; readonly size: number }>();

/** Notes that a span was read, and forgets those that were read longest ago if there are too many. */
function keep(key: readonly unknown[], row: unknown): void {
  const name = JSON.stringify(key);
  sizes.delete(name);
  sizes.set(name, { key, size: JSON.stringify(row)?.length ?? 0 });
  let total = [...sizes.values()].reduce((sum, { size }) => sum + size, 0);
  for (const [old, { key: oldKey, size }] of sizes) {
    if (sizes.size <= KEPT_SPANS && total <= KEPT_LETTERS) break;
    if (old === name) break;
    sizes.delete(old);
    total -= size;
    cache.removeQueries({ queryKey: oldKey, exact: true, type: "inactive" });
  }
}

/** One span with all that it has; null if it is gone. */
export const spanQuery = (place: SpanPlace, id: string) => {
  const queryKey = [...keyOf(place), "span", id] as const;
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }) => {
      const row = await readSpan(place, id, { signal });
      keep(queryKey, row);
      return row;
    },
    staleTime: 30_000,
    gcTime: 300_000,
    enabled: id !== "",
    placeholderData: keepPreviousData,
    structuralSharing: false,
  });
};

export interface RetentionRule {
  readonly name: string;
  readonly days: number;
}

/** Reads a rule that deletes rows of logs; null if the automation is none. */
function readRule(value: unknown, kind: SpanSourceKind): RetentionRule | null {
  const config = isRecord(value) ? value["config"] : null;
  if (!isRecord(value) || !isRecord(config) || config["event_type"] !== "retention") return null;
  if (config["object_type"] !== kind) return null;
  const days = config["retention_days"];
  return typeof days === "number" ? { name: textOrNull(value, "name") ?? "", days } : null;
}

/** The rules of a project that delete rows of a kind after some days. */
export const retentionQuery = (organization: string, projectId: string, kind: SpanSourceKind) =>
  queryOptions({
    queryKey: ["retention", organization, projectId, kind],
    queryFn: async ({ signal }): Promise<readonly RetentionRule[]> => {
      const path = `/v1/project_automation?project_id=${encodeURIComponent(projectId)}`;
      const answer = record(await call("GET", path, { organization, signal }), "automations");
      return list(answer, "objects").map((rule) => readRule(rule, kind)).filter((rule) => rule !== null);
    },
    staleTime: 60_000,
  });

export const contentsQuery = (place: SpanPlace, words: string) =>
  queryOptions({
    queryKey: [...keyOf(place), "find", words],
    queryFn: ({ signal }) => findSpans(place, words, { signal }),
    staleTime: 60_000,
    enabled: words !== "",
  });

/** The newest transaction of some spans; empty without spans. */
export const newestOf = (spans: readonly SpanHead[]): string =>
  spans.reduce((newest, span) => (isAfter(span.transaction, newest) ? span.transaction : newest), "");

const isAfter = (one: string, other: string): boolean =>
  one.length === other.length ? one > other : one.length > other.length;

/** The spans with those that were written since. A span that was written again stands where it stood. */
export function joined(spans: readonly SpanHead[], later: readonly SpanHead[]): readonly SpanHead[] {
  if (later.length === 0) return spans;
  const newer = new Map(later.map((span) => [span.spanId, span]));
  const known = spans.map((span) => newer.get(span.spanId) ?? span);
  const ids = new Set(spans.map((span) => span.spanId));
  return [...known, ...later.filter((span) => !ids.has(span.spanId))];
}

export const readLater = readSpansSince;
