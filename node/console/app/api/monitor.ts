// Requests of the monitor: queries of which few run at once, and dashboards, which are views of the project.
import { call } from "./client";
import { isRecord, list, record, text, textOrNull, type Fields } from "./narrow";
import { queriesIn, turns } from "./turns";

/** How many queries of cards run at once. */
const AT_ONCE = 4;

export const inTurn = turns(AT_ONCE);

/** Runs a query when its turn comes. */
export const runInTurn = queriesIn(inTurn);

/** A dashboard as the server keeps it. */
export interface DashboardRecord {
  readonly id: string;
  readonly name: string;
  readonly data: Fields;
  /** The options of a monitor, without the word that says whose they are. */
  readonly options: Fields;
}

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});

function readDashboard(value: unknown): DashboardRecord {
  const view = record(value, "view");
  const options = fieldsOf(view["options"]);
  return {
    id: text(view, "id"),
    name: textOrNull(view, "name") ?? "",
    data: fieldsOf(view["view_data"]),
    options: fieldsOf(options["options"]),
  };
}

/** The project that dashboards belong to. */
export interface Owner {
  readonly organization: string;
  readonly projectId: string;
}

const objectOf = ({ projectId }: Owner): Fields => ({ object_type: "project", object_id: projectId });

export async function readDashboards(owner: Owner, signal: AbortSignal): Promise<readonly DashboardRecord[]> {
  const path = `/v1/view?object_type=project&object_id=${encodeURIComponent(owner.projectId)}&view_type=monitor&limit=1000`;
  const answer = record(await call("GET", path, { organization: owner.organization, signal }), "views");
  return list(answer, "objects").map(readDashboard);
}

/** What of a dashboard is written. */
export interface DashboardBody {
  readonly view_data: Fields;
  readonly options: Fields;
}

/** Makes a dashboard and returns its id. */
export async function makeDashboard(owner: Owner, name: string, body: DashboardBody): Promise<string> {
  const sent = { ...objectOf(owner), view_type: "monitor", name, ...body };
  return readDashboard(await call("POST", "/v1/view", { organization: owner.organization, body: sent })).id;
}

/** Changes the name of a dashboard, or what it keeps. */
export async function changeDashboard(
  owner: Owner,
  id: string,
  changed: { readonly name: string } | DashboardBody,
): Promise<void> {
  const body = { ...objectOf(owner), ...changed };
  await call("PATCH", `/v1/view/${encodeURIComponent(id)}`, { organization: owner.organization, body });
}

export async function deleteDashboard(owner: Owner, id: string): Promise<void> {
  await call("DELETE", `/v1/view/${encodeURIComponent(id)}`, { organization: owner.organization, body: objectOf(owner) });
}
