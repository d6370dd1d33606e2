// Requests of API keys and service tokens. A new key is in the answer of the call that makes it, and nothing keeps it.
import { call } from "./client";
import { count, isRecord, list, record, text, textOrNull, type Fields } from "./narrow";
import { called, columns, compared, ident, literal, runQuery } from "./query";
import { readMadeKey, type MadeKey } from "./schema";

const PAGE = 1000;

/** Reads all objects of a list, page by page. */
export async function readAll(organization: string, path: string, signal: AbortSignal, isExact = false): Promise<readonly Fields[]> {
  const objects: Fields[] = [];
  for (let after = ""; ; ) {
    const query = `limit=${PAGE}${after === "" ? "" : `&starting_after=${after}`}`;
    const answer = record(await call("GET", `${path}?${query}`, { organization, signal, isExact }), "list");
    const page = list(answer, "objects").map((object) => record(object, "object"));
    objects.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return objects;
    after = encodeURIComponent(text(last, "id"));
  }
}

/** A key of a person, or a token of a service account. */
export interface Credential {
  readonly id: string;
  readonly name: string;
  /** Its first and last letters. */
  readonly preview: string;
  readonly ownerId: string;
  /** How the person or the account is called. */
  readonly owner: string;
  readonly email: string | null;
  readonly created: string | null;
}

const joined = (...parts: readonly (string | null)[]): string | null => {
  const words = parts.filter((part) => part !== null && part !== "").join(" ");
  return words === "" ? null : words;
};

function readKey(key: Fields): Credential {
  const email = textOrNull(key, "user_email");
  const ownerId = text(key, "user_id");
  return {
    id: text(key, "id"),
    name: text(key, "name"),
    preview: text(key, "preview_name"),
    ownerId,
    owner: joined(textOrNull(key, "user_given_name"), textOrNull(key, "user_family_name")) ?? email ?? ownerId,
    email,
    created: textOrNull(key, "created"),
  };
}

function readToken(token: Fields): Credential {
  const email = textOrNull(token, "service_account_email");
  const ownerId = text(token, "service_account_id");
  return {
    id: text(token, "id"),
    name: text(token, "name"),
    preview: text(token, "preview_name"),
    ownerId,
    owner: textOrNull(token, "service_account_name") ?? email ?? ownerId,
    email,
    created: textOrNull(token, "created"),
  };
}

/** The keys that the person may see: their own, and for owners those of all members. */
export const readKeys = async (organization: string, signal: AbortSignal): Promise<readonly Credential[]> =>
  (await readAll(organization, "/v1/organization/api_keys", signal)).map(readKey);

export const readTokens = async (organization: string, signal: AbortSignal): Promise<readonly Credential[]> =>
  (await readAll(organization, "/v1/service_token", signal)).map(readToken);

/** Makes a key of the person who is signed in. Only this answer has it. */
export const makeKey = async (organization: string, name: string): Promise<MadeKey> =>
  readMadeKey(await call("POST", "/v1/api_key", { organization, body: { name } }));

export const makeToken = async (organization: string, account: string, name: string): Promise<MadeKey> =>
  readMadeKey(await call("POST", "/v1/service_token", { organization, body: { name, service_account_id: account } }));

/** Makes a service account with its first token. */
export async function makeAccount(organization: string, name: string, token: string): Promise<MadeKey> {
  const body = { invite_users: { service_accounts: [{ name, token_name: token }] } };
  const answer = record(await call("PATCH", "/v1/organization/members", { organization, body }), "members");
  const [added] = list(answer, "added_users");
  return { name: token, key: text(record(added, "account"), "api_key") };
}

/** What can be deleted by its id. */
export type DeletedKind = "api_key" | "service_token" | "ai_secret" | "env_var";

export async function deleteCredential(organization: string, kind: DeletedKind, id: string): Promise<void> {
  await call("DELETE", `/v1/${kind}/${encodeURIComponent(id)}`, { organization });
}

/** Something that has an id and a name, such as an account to choose. */
export interface Named {
  readonly id: string;
  readonly name: string;
}

/** The service accounts of the organization that the person may see. Their addresses tell them from people. */
export async function readAccounts(organization: string, signal: AbortSignal): Promise<readonly Named[]> {
  const users = await readAll(organization, "/v1/user", signal);
  return users
    .filter((user) => isServiceAccount(textOrNull(user, "email")))
    .map((user) => ({ id: text(user, "id"), name: joined(textOrNull(user, "given_name")) ?? text(user, "email") }));
}

export const isServiceAccount = (email: string | null): boolean => /@service\..+\.invalid$/.test(email ?? "");

/** The names of people and accounts by their ids. */
export async function readPeople(organization: string, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
  const users = await readAll(organization, "/v1/user", signal);
  const nameOf = (user: Fields): string =>
    joined(textOrNull(user, "given_name"), textOrNull(user, "family_name")) ?? textOrNull(user, "email") ?? text(user, "id");
  return new Map(users.map((user) => [text(user, "id"), nameOf(user)]));
}

/** How long a session lasts, and how much later than its beginning its sign-in may be on record; in milliseconds. */
const SESSION_MS = 30 * 86_400_000;
const SLACK_MS = 3000;

/**
 * The id of the key that the session was opened with; null if it is none or cannot be told. The session says it, or
 * else the sign-ins on record: all were by one key, or one began when the session did.
 */
export async function readOwnCredential(organization: string, organizationId: string, signal: AbortSignal): Promise<string | null> {
  const session = record(await call("GET", "/console/session", { organization, signal }), "session");
  if (textOrNull(session, "by") !== "key") return null;
  const said = textOrNull(session, "credential_id");
  if (said !== null) return said;
  const began = count(session, "expires_at") * 1000 - SESSION_MS;
  const userId = text(record(session["user"], "user"), "id");
  const page = await runQuery(
    organization,
    {
      select: columns("created", "actor"),
      from: called("org_audit_logs", literal(organizationId)),
      filter: [
        compared("eq", ident("action"), literal("console_sign_in")),
        compared("eq", ident("actor", "user_id"), literal(userId)),
      ],
      limit: PAGE,
    },
    { signal },
  );
  const idOf = ({ actor }: Fields): string => (isRecord(actor) ? (textOrNull(actor, "credential_id") ?? "") : "");
  const isThen = ({ created }: Fields): boolean => Math.abs(Date.parse(String(created)) - began) < SLACK_MS;
  const all = new Set(page.rows.map(idOf));
  const fitting = all.size > 1 || page.rows.length === PAGE ? new Set(page.rows.filter(isThen).map(idOf)) : all;
  const [only] = fitting;
  return fitting.size === 1 && only !== undefined && only !== "" ? only : null;
}
