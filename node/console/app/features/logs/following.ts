// Follows what arrives in the logs, and reads it in the form of the list.
import { runQuery } from "../../api/query";
import { follow } from "../../api/tail";
import { tailOf } from "./laterRequests";
import { pageOf, type RowsPage } from "./queries";
import type { LogsRequest } from "./request";

interface Following {
  readonly organization: string;
  readonly request: LogsRequest;
  /** The last transaction that the list holds. */
  readonly last: () => string;
  readonly take: (page: RowsPage) => void;
  readonly signal: AbortSignal;
}

/** Takes in what came, or changed, after the last transaction, until the signal ends it. */
export function followRows({ organization, request, last, take, signal }: Following): void {
  const { projectId, shape, filter } = request;
  // A trace fulfils a filter by all of its spans, of which the one that arrives need not fulfil it.
  const followed = { organization, kind: "project_logs", id: projectId, filter: shape === "spans" ? filter : "" } as const;
  const read = async (until: AbortSignal): Promise<void> => {
    const page = await runQuery(organization, tailOf(request, last()), { signal: until });
    if (!until.aborted) take(pageOf(page, request));
  };
  follow(followed, { last, read }, signal);
}
