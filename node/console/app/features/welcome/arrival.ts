// What the page says of traces that have arrived.
import type { Project } from "../../api/schema";

export type Arrival =
  | { readonly kind: "waiting" }
  /** There are traces, but not in the project that the code names. */
  | { readonly kind: "elsewhere"; readonly project: Project }
  | { readonly kind: "here"; readonly project: Project };

const moment = (project: Project): number => Date.parse(project.newest ?? "") || 0;

/** The project with the newest trace. */
export function newestProject(projects: readonly Project[]): Project | null {
  const withTraces = projects.filter((project) => project.newest !== null);
  return withTraces.reduce<Project | null>(
    (newest, project) => (newest === null || moment(project) > moment(newest) ? project : newest),
    null,
  );
}

/** Looks for traces of the named project first, and of any project if none is named. */
export function arrivalOf(projects: readonly Project[], named: string): Arrival {
  const newest = newestProject(projects);
  if (newest === null) return { kind: "waiting" };
  if (named === "") return { kind: "here", project: newest };
  const project = projects.find((one) => one.name === named);
  if (project !== undefined && project.newest !== null) return { kind: "here", project };
  return { kind: "elsewhere", project: newest };
}
