// The requests of the home screen, besides the list of projects that others read too.
import { call } from "../../api/client";
import { cache, projectsQuery } from "../../api/queries";
import { readMadeProject } from "../../api/schema";

/** Makes a project and returns its name as the server keeps it. */
export async function makeProject(organization: string, name: string): Promise<string> {
  const made = readMadeProject(await call("POST", "/v1/project", { organization, body: { name } }));
  await cache.invalidateQueries({ queryKey: projectsQuery(organization).queryKey });
  return made;
}

/** Starts to read what the screen needs, while its code and the session are still on their way. */
export const prefetchHome = (organization: string): void => void cache.prefetchQuery(projectsQuery(organization));
