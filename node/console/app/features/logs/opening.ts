// Reads the first rows of a page before its screen is there.
import { cache, projectQuery } from "../../api/queries";
import { isKept } from "../../lib/address";
import { rowsQuery } from "./queries";
import { requestOf } from "./request";
import type { LogsState } from "./url";

/** How long the moment is kept for the screen. */
const KEPT_MS = 30_000;

/** The moment from which the range of the first rows counts. */
let opened: number | null = null;

/** The moment from which the range of a new list counts: that of the rows which are being read for it, or now. */
export function openingMoment(): number {
  const present = Date.now();
  const moment = opened;
  opened = null;
  return moment !== null && present - moment < KEPT_MS ? moment : present;
}

/** Starts to read the first rows of a list. */
export async function readFirstRows(state: LogsState): Promise<void> {
  if (state.group !== "" || state.oid !== "" || isKept(state.view)) return;
  const moment = Date.now();
  opened = moment;
  const project = await cache.fetchQuery(projectQuery(state.organization, state.project));
  if (project === null) return;
  await cache.prefetchInfiniteQuery(rowsQuery(state.organization, requestOf(state, project.id, moment)));
}
