// The requests of the section about retention.
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call } from "../../api/client";
import { list, record, text } from "../../api/narrow";
import { cache, projectsQuery } from "../../api/queries";
import { countOld, type OldRows, type RetainedKind } from "../../api/usage";
import { configOf, cutoffOf, freeName, readRule, type Rule } from "./rules";

const PAGE = 1000;
/** How many objects a preview looks through. */
export const MOST_OBJECTS = 5000;

const pathOf = (project: string | null): string => (project === null ? "/v1/org_automation" : "/v1/project_automation");

/** Reads a list page by page, up to a number of objects. */
async function readAll(path: string, organization: string, signal: AbortSignal, most = MOST_OBJECTS): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  for (let after = ""; found.length < most; ) {
    const start = after === "" ? "" : `&starting_after=${after}`;
    const join = path.includes("?") ? "&" : "?";
    const page = list(record(await call("GET", `${path}${join}limit=${PAGE}${start}`, { organization, signal }), "answer"), "objects");
    found.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = text(record(last, "object"), "id");
  }
  return found;
}

export const rulesQuery = (organization: string) =>
  queryOptions({
    queryKey: ["retention", organization],
    queryFn: async ({ signal }): Promise<readonly Rule[]> => {
      const all = await Promise.all([pathOf(null), pathOf("")].map((path) => readAll(path, organization, signal)));
      return all.flat().map(readRule).filter((rule) => rule !== null);
    },
  });

export interface Preview extends OldRows {
  /** The moment from before which rows would go. */
  readonly before: string;
  /** How many objects were looked through. */
  readonly objects: number;
  /** Whether there are more objects than a preview looks through. */
  readonly isPartial: boolean;
}

async function objectsOf(
  organization: string,
  { project, kind }: Pick<Rule, "project" | "kind">,
  ruled: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (kind === "project_logs") {
    if (project !== null) return [project];
    const all = (await cache.fetchQuery(projectsQuery(organization))).projects;
    return all.map(({ id }) => id).filter((id) => !ruled.includes(id));
  }
  const found = await readAll(`/v1/${kind}${project === null ? "" : `?project_id=${project}`}`, organization, signal);
  const objects = found.map((one) => record(one, "object"));
  return objects.filter((one) => project !== null || !ruled.includes(text(one, "project_id"))).map((one) => text(one, "id"));
}

/** Counts what a rule would delete now. `ruled` are the projects that have a rule of their own. */
export const previewQuery = (
  organization: string,
  rule: { readonly project: string | null; readonly kind: RetainedKind; readonly days: number | null },
  ruled: readonly string[],
) =>
  queryOptions({
    queryKey: ["retention preview", organization, rule, rule.project === null ? ruled : []],
    enabled: rule.days !== null,
    staleTime: 30_000,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Preview> => {
      const before = cutoffOf(rule.days ?? 0, Date.now());
      const ids = await objectsOf(organization, rule, ruled, signal);
      const found = await countOld(organization, rule.kind, ids, before, signal);
      return { ...found, before, objects: ids.length, isPartial: ids.length >= MOST_OBJECTS };
    },
  });

const refreshed = (organization: string): Promise<void> => cache.invalidateQueries({ queryKey: rulesQuery(organization).queryKey });

/** The names of the automations that a new one must not have. */
async function namesOf(organization: string, project: string | null): Promise<readonly string[]> {
  const path = project === null ? pathOf(null) : `${pathOf(project)}?project_id=${project}`;
  const found = await readAll(path, organization, new AbortController().signal);
  return found.map((one) => text(record(one, "automation"), "name"));
}

/** Makes a rule, or changes one. `isConfirmed` says that the person confirmed how soon it deletes. */
export async function saveRule(
  organization: string,
  before: Rule | null,
  rule: Pick<Rule, "project" | "kind" | "days">,
  isConfirmed: boolean,
): Promise<void> {
  const config = configOf(rule, isConfirmed);
  if (before === null) {
    const name = freeName(rule.kind, await namesOf(organization, rule.project));
    const on = rule.project === null ? {} : { project_id: rule.project };
    await call("POST", pathOf(rule.project), { organization, body: { ...on, name, config } });
  } else await call("PATCH", `${pathOf(before.project)}/${before.id}`, { organization, body: { config } });
  await refreshed(organization);
}

export async function deleteRule(organization: string, rule: Rule): Promise<void> {
  await call("DELETE", `${pathOf(rule.project)}/${rule.id}`, { organization });
  await refreshed(organization);
}
