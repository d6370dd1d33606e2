// The requests of the section about access that no other section makes.
import { queryOptions } from "@tanstack/react-query";
import { KINDS, waysOf, type Kind, type Named, type Way } from "../../api/access";
import { textOrNull, text } from "../../api/narrow";
import { listAll } from "../../api/people";

/** The kinds of which an organization has one, under its own id. */
const SINGLE: ReadonlySet<string> = new Set(["organization", "org_project", "org_member", "org_audit_logs", "org_ai_secret"]);

export const isSingle = (kind: Kind): boolean => SINGLE.has(kind);

const IN_PROJECT: ReadonlySet<string> = new Set(["experiment", "dataset", "prompt", "prompt_session"]);

export const isInProject = (kind: Kind): boolean => IN_PROJECT.has(kind);

/** Whether the object is a project, or its logs, which have its id. */
export const isOfProject = (kind: Kind): boolean => kind === "project" || kind === "project_log";

/** The objects of a kind that the caller sees, for the choice of one. */
export const objectsQuery = (organization: string, kind: Kind, project: string) =>
  queryOptions({
    queryKey: ["objects of access", organization, kind, project],
    queryFn: async ({ signal }): Promise<readonly Named[]> => {
      const path = isInProject(kind) ? `/v1/${kind}?project_id=${encodeURIComponent(project)}` : `/v1/${kind}`;
      const found = await listAll(path, organization, signal);
      return found.map((one) => ({ id: text(one, "id"), name: textOrNull(one, "name") ?? text(one, "id") }));
    },
    enabled: !isSingle(kind) && !isOfProject(kind) && (!isInProject(kind) || project !== ""),
  });

export interface AskedObject {
  readonly kind: Kind;
  readonly id: string;
  readonly name: string;
}

export interface Reach extends AskedObject {
  readonly ways: readonly Way[];
}

const AT_ONCE = 6;

/** What somebody may do on each of some objects. */
export const reachQuery = (organization: string, user: string, objects: readonly AskedObject[]) =>
  queryOptions({
    queryKey: ["access", organization, "reach", user, objects.map(({ kind, id }) => `${kind} ${id}`)],
    queryFn: async ({ signal }): Promise<readonly Reach[]> => {
      const found: Reach[] = [];
      for (let at = 0; at < objects.length; at += AT_ONCE) {
        const part = objects.slice(at, at + AT_ONCE);
        const read = async (object: AskedObject) => ({ ...object, ways: await waysOf(organization, object, user, signal) });
        found.push(...(await Promise.all(part.map(read))));
      }
      return found;
    },
    enabled: user !== "",
  });

/** The objects of which an organization has one. */
export const singles = (organizationId: string): readonly AskedObject[] =>
  KINDS.filter(([kind]) => isSingle(kind)).map(([kind, name]) => ({ kind, id: organizationId, name }));
