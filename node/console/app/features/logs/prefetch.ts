// What is read before the code of the logs is there. It stands alone, because every page loads it.
import { cache, projectQuery } from "../../api/queries";
import { holdBack } from "../../lib/first";
import type { LogsState } from "./url";

/** Starts to read what the screens of a project need first. */
export const prefetchProject = (organization: string, project: string): void =>
  void cache.prefetchQuery(projectQuery(organization, project));

/** Starts to read the rows of a list, and the code that shows them. All else waits for them. */
export function prefetchLogs(state: LogsState): void {
  holdBack();
  prefetchProject(state.organization, state.project);
  const start = async (): Promise<void> => {
    const screen = import("./screen");
    await (await import("./opening")).readFirstRows(state);
    await screen;
  };
  void start().catch(() => undefined);
}
