// Reads what was written to a row, event by event, and who writes scores and comments.
import { isRecord, list, record, text, textOrNull, type Fields } from "./narrow";
import { call } from "./client";
import { compared, ident, literal, runQuery, sourceOf } from "./query";
import type { SpanPlace } from "./spans";

/** The most events of a row that are read. */
export const EVENTS_MAX = 200;

/** One write to a row, with the columns that it wrote; those that it did not are null. */
export interface RowEvent {
  readonly transaction: string;
  readonly action: string;
  /** Where it came from, such as `app` or `api`; empty if it is not known. */
  readonly source: string;
  /** The id of who wrote it; empty if it is not known. */
  readonly userId: string;
  readonly columns: Fields;
}

/** The id of a user in the metadata of an event. */
export const userIn = (metadata: unknown): string => (isRecord(metadata) ? (textOrNull(metadata, "user_id") ?? "") : "");

function readEvent(row: Fields): RowEvent {
  const audit = isRecord(row["audit_data"]) ? row["audit_data"] : {};
  return {
    transaction: String(row["_xact_id"] ?? ""),
    action: textOrNull(audit, "action") ?? "",
    source: textOrNull(audit, "source") ?? "",
    userId: userIn(audit["metadata"]),
    columns: row,
  };
}

/** Reads the writes to a row, the newest first. */
export async function readHistory(place: SpanPlace, id: string, signal: AbortSignal): Promise<readonly RowEvent[]> {
  const query = {
    select: [{ op: "star" }],
    from: sourceOf(place.source.kind, place.source.id),
    filter: [compared("eq", ident("id"), literal(id))],
    limit: EVENTS_MAX,
  };
  const page = await runQuery(place.organization, query, { signal, version: place.version, auditLog: true, isExact: true });
  return page.rows.map(readEvent);
}

/** Reads the names of users: their e-mail address, else their name. */
export async function readUserNames(organization: string, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const path = `/v1/user?org_name=${encodeURIComponent(organization)}`;
  const users = list(record(await call("GET", path, { organization, signal }), "users"), "objects");
  return new Map(
    users.map((value) => {
      const user = record(value, "user");
      const name = [textOrNull(user, "given_name"), textOrNull(user, "family_name")].filter(Boolean).join(" ");
      return [text(user, "id"), name || (textOrNull(user, "email") ?? text(user, "id"))] as const;
    }),
  );
}

export interface ScoreCategory {
  readonly name: string;
  readonly value: number;
}

/** A score that people of a project give. */
export interface ScoreDefinition {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly type: string;
  readonly categories: readonly ScoreCategory[];
}

function readCategories(value: unknown): readonly ScoreCategory[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isRecord).flatMap((one) => {
    const number = one["value"];
    return typeof number === "number" ? [{ name: textOrNull(one, "name") ?? String(number), value: number }] : [];
  });
}

/** Reads the scores that are defined in a project. */
export async function readScoreDefinitions(organization: string, projectId: string, signal: AbortSignal) {
  const path = `/v1/project_score?project_id=${encodeURIComponent(projectId)}`;
  const answer = record(await call("GET", path, { organization, signal }), "scores");
  return list(answer, "objects").map((value): ScoreDefinition => {
    const score = record(value, "score");
    return {
      id: text(score, "id"),
      name: text(score, "name"),
      description: textOrNull(score, "description") ?? "",
      type: textOrNull(score, "score_type") ?? "",
      categories: readCategories(score["categories"]),
    };
  });
}
