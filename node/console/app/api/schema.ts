// The forms of what the server sends to the console.
import { count, flag, isRecord, list, record, text, textOrNull, type Fields } from "./narrow";

/** What the server says of itself to everybody. */
export interface About {
  readonly version: string;
  readonly node: string | null;
  readonly cluster: string;
  /** The parts of the console that this server serves. */
  readonly served: readonly string[];
  /** The identity provider, if people can sign in with one. */
  readonly issuer: string | null;
  /** Where the first key was printed, while nobody has ever signed in. */
  readonly firstKey: string | null;
  /** Whether any row exists; null without a session. */
  readonly hasRows: boolean | null;
  /** False if keys travel over plain http between machines. */
  readonly isSecure: boolean;
}

export interface Organization {
  readonly id: string;
  readonly name: string;
}

export interface Session {
  readonly user: {
    readonly id: string;
    readonly email: string | null;
    readonly givenName: string | null;
    readonly familyName: string | null;
  };
  readonly organizations: readonly Organization[];
  readonly by: "key" | "login";
}

export interface Project {
  readonly id: string;
  readonly name: string;
  /** When its newest row was created, as ISO text. */
  readonly newest: string | null;
  readonly rows: number;
  readonly errors: number;
}

export interface Projects {
  readonly projects: readonly Project[];
  /** Whether there are more than were sent. */
  readonly isTruncated: boolean;
}

/** A project as screens of its own know it. */
export interface NamedProject {
  readonly id: string;
  readonly name: string;
}

export interface MadeKey {
  readonly name: string;
  readonly key: string;
}

export function readAbout(value: unknown): About {
  const about = record(value, "about");
  const signIn = record(about["sign_in"], "sign_in");
  const oidc = signIn["oidc"];
  const hasRows = about["has_rows"];
  return {
    version: text(about, "version"),
    node: textOrNull(about, "node"),
    cluster: text(about, "cluster"),
    served: list(about, "served").filter((part) => typeof part === "string"),
    issuer: isRecord(oidc) ? text(oidc, "issuer") : null,
    firstKey: textOrNull(about, "first_key"),
    hasRows: typeof hasRows === "boolean" ? hasRows : null,
    isSecure: flag(about, "secure"),
  };
}

const readOrganization = (value: unknown): Organization => {
  const organization = record(value, "organization");
  return { id: text(organization, "id"), name: text(organization, "name") };
};

function readUser(user: Fields): Session["user"] {
  return {
    id: text(user, "id"),
    email: textOrNull(user, "email"),
    givenName: textOrNull(user, "given_name"),
    familyName: textOrNull(user, "family_name"),
  };
}

export function readSession(value: unknown): Session {
  const session = record(value, "session");
  return {
    user: readUser(record(session["user"], "user")),
    organizations: list(session, "organizations").map(readOrganization),
    by: text(session, "by") === "key" ? "key" : "login",
  };
}

function readProject(value: unknown): Project {
  const project = record(value, "project");
  return {
    id: text(project, "id"),
    name: text(project, "name"),
    newest: textOrNull(project, "newest"),
    rows: count(project, "rows_24h"),
    errors: count(project, "errors_24h"),
  };
}

export function readProjects(value: unknown): Projects {
  const answer = record(value, "projects");
  return { projects: list(answer, "projects").map(readProject), isTruncated: flag(answer, "truncated") };
}

/** Reads the only project of a list, or null of an empty one. */
export function readNamedProject(value: unknown): NamedProject | null {
  const [first] = list(record(value, "projects"), "objects");
  if (first === undefined) return null;
  const project = record(first, "project");
  return { id: text(project, "id"), name: text(project, "name") };
}

/** Reads a project that was just made, of which the name matters. */
export const readMadeProject = (value: unknown): string => text(record(value, "project"), "name");

export function readMadeKey(value: unknown): MadeKey {
  const made = record(value, "key");
  return { name: text(made, "name"), key: text(made, "key") };
}

/** How a person is called: by name, else by email, else by id. */
export function personName(user: Session["user"]): string {
  const name = [user.givenName, user.familyName].filter((part) => part !== null && part !== "").join(" ");
  return name || (user.email ?? user.id);
}
