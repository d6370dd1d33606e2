// Requests of the audit log: pages of entries, what can be filtered by, the names of objects, and the chain.
import { call } from "./client";
import { isRecord, list, record, text, textOrNull, type Fields } from "./narrow";
import {
  called,
  columns,
  compared,
  ident,
  item,
  literal,
  runQuery,
  type ExportFormat,
  type Expression,
  type QueryObject,
} from "./query";

/** Whose log is read. */
export interface AuditScope {
  readonly organization: string;
  readonly organizationId: string;
}

/** Who did something. */
export interface Actor {
  /** `user`, or what acts without one, such as `operator`. */
  readonly type: string;
  readonly userId: string | null;
  readonly email: string | null;
  /** What the person signed in with, such as `api_key`. */
  readonly credential: string | null;
  readonly credentialId: string | null;
  /** The owner who acted as the person. */
  readonly impersonatorId: string | null;
}

export interface AuditEntry {
  readonly sequence: number;
  readonly created: string | null;
  readonly action: string;
  readonly objectType: string;
  readonly objectId: string;
  readonly objectName: string | null;
  readonly actor: Actor;
  readonly details: Fields;
  /** The whole entry as it was sent. */
  readonly whole: Fields;
}

export interface AuditFilter {
  /** The id of a person, or the type of another actor; empty for all. */
  readonly who: string;
  readonly action: string;
  /** The kind of object. */
  readonly kind: string;
  /** A part of the object's name, or an id in the entry. */
  readonly object: string;
  /** Bounds as ISO text. */
  readonly from: string | null;
  readonly to: string | null;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly cursor: string | null;
}

/** How many entries one actor made with one action on one kind of object. */
export interface AuditCount {
  readonly who: string;
  readonly email: string | null;
  readonly action: string;
  readonly kind: string;
  readonly count: number;
}

const PAGE = 100;
const CHAIN_PAGE = 500;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The actor that stands in addresses: a person's id, or the type of one who is no person. */
const actorKey = (userId: string | null, type: string | null): string => userId ?? type ?? "";

const sourceOf = ({ organizationId }: AuditScope): Expression => called("org_audit_logs", literal(organizationId));

const inOrder = (dir: "asc" | "desc"): QueryObject["sort"] & object => [{ expr: ident("_pagination_key"), dir }];

function readActor(value: unknown): Actor {
  const actor = isRecord(value) ? value : {};
  return {
    type: textOrNull(actor, "type") ?? "system",
    userId: textOrNull(actor, "user_id"),
    email: textOrNull(actor, "user_email"),
    credential: textOrNull(actor, "credential"),
    credentialId: textOrNull(actor, "credential_id"),
    impersonatorId: textOrNull(actor, "impersonator_id"),
  };
}

export function readAuditEntry(row: Fields): AuditEntry {
  const { sequence, details } = row;
  return {
    sequence: typeof sequence === "number" ? sequence : 0,
    created: textOrNull(row, "created"),
    action: textOrNull(row, "action") ?? "",
    objectType: textOrNull(row, "object_type") ?? "",
    objectId: textOrNull(row, "object_id") ?? "",
    objectName: textOrNull(row, "object_name"),
    actor: readActor(row["actor"]),
    details: isRecord(details) ? details : {},
    whole: row,
  };
}

/** The places of an entry that hold ids of what it is about. */
const ID_PLACES: readonly (readonly string[])[] = [
  ["object_id"],
  ...["before", "after"].flatMap((moment) =>
    ["object_id", "user_id", "group_id", "role_id"].map((key) => ["details", moment, key]),
  ),
];

function isAbout(words: string): Expression {
  if (UUID.test(words)) {
    const id = literal(words.toLowerCase());
    return { op: "or", children: ID_PLACES.map((place) => compared("eq", ident(...place), id)) };
  }
  const pattern = `%${words.replace(/[\\%_]/g, "\\$&")}%`;
  return { op: "ilike", left: ident("object_name"), right: literal(pattern) };
}

/** The conditions of a filter. */
export function auditConditions({ who, action, kind, object, from, to }: AuditFilter): readonly Expression[] {
  const actor = UUID.test(who) ? ident("actor", "user_id") : ident("actor", "type");
  return [
    from === null ? null : compared("ge", ident("created"), literal(from)),
    to === null ? null : compared("lt", ident("created"), literal(to)),
    who === "" ? null : compared("eq", actor, literal(who)),
    action === "" ? null : compared("eq", ident("action"), literal(action)),
    kind === "" ? null : compared("eq", ident("object_type"), literal(kind)),
    object.trim() === "" ? null : isAbout(object.trim()),
  ].filter((condition) => condition !== null);
}

const entriesQuery = (scope: AuditScope, filter: AuditFilter): QueryObject => ({
  select: [{ op: "star" }],
  from: sourceOf(scope),
  filter: auditConditions(filter),
  sort: inOrder("desc"),
});

/** Reads a page of entries, the newest first. */
export async function readAuditPage(
  scope: AuditScope,
  filter: AuditFilter,
  cursor: string,
  signal: AbortSignal,
): Promise<AuditPage> {
  const query = { ...entriesQuery(scope, filter), limit: PAGE, ...(cursor === "" ? {} : { cursor }) };
  const page = await runQuery(scope.organization, query, { signal, isExact: true });
  return { entries: page.rows.map(readAuditEntry), cursor: page.rows.length === PAGE ? page.cursor : null };
}

/** Reads the one entry that has a number; null if there is none. */
export async function readAuditEntryAt(scope: AuditScope, sequence: number, signal: AbortSignal): Promise<AuditEntry | null> {
  const filter = [compared("eq", ident("sequence"), literal(sequence))];
  const query: QueryObject = { select: [{ op: "star" }], from: sourceOf(scope), filter, limit: 1 };
  const [row] = (await runQuery(scope.organization, query, { signal, isExact: true })).rows;
  return row === undefined ? null : readAuditEntry(row);
}

/** Counts entries by actor, action and kind of object. */
export async function readAuditCounts(scope: AuditScope, signal: AbortSignal): Promise<readonly AuditCount[]> {
  const query: QueryObject = {
    dimensions: [
      item("kind", ident("object_type")),
      item("action", ident("action")),
      item("user", ident("actor", "user_id")),
      item("type", ident("actor", "type")),
      item("email", ident("actor", "user_email")),
    ],
    measures: [item("n", called("count", literal(1)))],
    from: sourceOf(scope),
    sort: [{ expr: ident("n"), dir: "desc" }],
    limit: 1000,
  };
  return (await runQuery(scope.organization, query, { signal })).rows.map((row) => ({
    who: actorKey(textOrNull(row, "user"), textOrNull(row, "type")),
    email: textOrNull(row, "email"),
    action: textOrNull(row, "action") ?? "",
    kind: textOrNull(row, "kind") ?? "",
    count: typeof row["n"] === "number" ? row["n"] : 0,
  }));
}

/** Prepares a file of all that the filter finds, and returns its address, which is good once and for a minute. */
export async function prepareAuditFile(scope: AuditScope, filter: AuditFilter, fmt: ExportFormat): Promise<string> {
  const body = { query: entriesQuery(scope, filter), fmt, filename: "audit-log", disable_limit: true };
  return text(record(await call("POST", "/console/download", { organization: scope.organization, body }), "download"), "url");
}

/** Reads rows of the log from an entry on, the oldest first, with every digit of their numbers. */
export async function readChainPage(
  scope: AuditScope,
  first: number,
  cursor: string,
  signal: AbortSignal,
): Promise<{ readonly rows: readonly Fields[]; readonly cursor: string | null }> {
  const query: QueryObject = {
    select: [{ op: "star" }],
    from: sourceOf(scope),
    filter: first <= 1 ? [] : [compared("ge", ident("sequence"), literal(first))],
    sort: inOrder("asc"),
    limit: CHAIN_PAGE,
    ...(cursor === "" ? {} : { cursor }),
  };
  const page = await runQuery(scope.organization, query, { signal, isExact: true });
  return { rows: page.rows, cursor: page.rows.length === CHAIN_PAGE ? page.cursor : null };
}

/** Reads the number and the hash of the newest entry; null of an empty log. */
export async function readChainEnd(
  scope: AuditScope,
  signal: AbortSignal,
): Promise<{ readonly sequence: number; readonly hash: string } | null> {
  const query: QueryObject = {
    select: columns("sequence", "hash"),
    from: sourceOf(scope),
    sort: inOrder("desc"),
    limit: 1,
  };
  const [row] = (await runQuery(scope.organization, query, { signal })).rows;
  if (row === undefined) return null;
  return { sequence: typeof row["sequence"] === "number" ? row["sequence"] : 0, hash: textOrNull(row, "hash") ?? "" };
}

function nameOf(named: Fields): string | null {
  const person = [textOrNull(named, "given_name"), textOrNull(named, "family_name")].filter((part) => part !== null && part !== "");
  return textOrNull(named, "name") ?? (person.length > 0 ? person.join(" ") : textOrNull(named, "email"));
}

/** Reads the names of people, groups, roles and projects by their ids. A list that cannot be read gives no names. */
export async function readNames(organization: string, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const kinds = ["user", "group", "role", "project"];
  const answers = await Promise.allSettled(
    kinds.map((kind) => call("GET", `/v1/${kind}?limit=1000`, { organization, signal, isWithoutGate: true })),
  );
  const names = new Map<string, string>();
  for (const answer of answers) {
    if (answer.status === "rejected") continue;
    for (const named of list(record(answer.value, "names"), "objects").filter(isRecord)) {
      const name = nameOf(named);
      if (name !== null) names.set(text(named, "id"), name);
    }
  }
  return names;
}
