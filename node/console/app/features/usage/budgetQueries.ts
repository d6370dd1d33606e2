// The requests of the section about budgets.
import { queryOptions } from "@tanstack/react-query";
import { call } from "../../api/client";
import { list, record, text, textOrNull, type Fields } from "../../api/narrow";
import { cache, projectsQuery } from "../../api/queries";
import { changeOf, LIMITS, readBudget, readBudgetUsage, type Budget, type BudgetDraft, type BudgetUsage, type ScopeType } from "./budget";
import type { Choice } from "./parts/Forms";

const PATH = "/v1/gateway_budget";
const PAGE = 1000;
/** How often the usage is read again, in milliseconds. */
const AGAIN_MS = 10_000;
const AT_ONCE = 4;

const objects = async (path: string, organization: string, signal: AbortSignal): Promise<readonly Fields[]> =>
  list(record(await call("GET", `${path}?limit=${PAGE}`, { organization, signal }), "answer"), "objects").map((one) =>
    record(one, "object"),
  );

export const budgetsQuery = (organization: string) =>
  queryOptions({
    queryKey: ["budgets", organization],
    queryFn: async ({ signal }) => (await objects(PATH, organization, signal)).map(readBudget),
  });

async function usageOf(organization: string, id: string, signal: AbortSignal): Promise<readonly [string, BudgetUsage]> {
  return [id, readBudgetUsage(await call("GET", `${PATH}/${id}/usage`, { organization, signal }))];
}

/** The usage of budgets by their ids, read again and again while the page is looked at. */
export const budgetUsageQuery = (organization: string, ids: readonly string[]) =>
  queryOptions({
    queryKey: ["budget usage", organization, ids],
    enabled: ids.length > 0,
    refetchInterval: AGAIN_MS,
    queryFn: async ({ signal }) => {
      const found = new Map<string, BudgetUsage>();
      for (let at = 0; at < ids.length; at += AT_ONCE) {
        const some = await Promise.all(ids.slice(at, at + AT_ONCE).map((id) => usageOf(organization, id, signal)));
        for (const [id, usage] of some) found.set(id, usage);
      }
      return found;
    },
  });

const SERVICE = /@service\./;

const namedOf = (fields: Fields, more: string | null): Choice => {
  const name = text(fields, "name");
  return { id: text(fields, "id"), name: more === null ? name : `${name} (${more})` };
};

function personOf(fields: Fields): Choice {
  const names = [textOrNull(fields, "given_name"), textOrNull(fields, "family_name")].filter((name) => name !== null && name !== "");
  const id = text(fields, "id");
  return { id, name: names.length > 0 ? names.join(" ") : (textOrNull(fields, "email") ?? id) };
}

async function choicesOf(type: ScopeType, organization: string, signal: AbortSignal): Promise<readonly Choice[]> {
  const read = (path: string): Promise<readonly Fields[]> => objects(path, organization, signal);
  switch (type) {
    case "org":
      return [];
    case "project":
      return (await cache.fetchQuery(projectsQuery(organization))).projects;
    case "user":
    case "service_account":
      return (await read("/v1/user"))
        .filter((user) => SERVICE.test(textOrNull(user, "email") ?? "") === (type === "service_account"))
        .map(personOf);
    case "api_key": {
      const [keys, tokens] = await Promise.all([read("/v1/api_key"), read("/v1/service_token")]);
      return [
        ...keys.map((key) => namedOf(key, textOrNull(key, "user_email"))),
        ...tokens.map((token) => namedOf(token, textOrNull(token, "service_account_name"))),
      ];
    }
    case "secret":
      return (await read("/v1/ai_secret")).map((secret) => namedOf(secret, null));
    case "model": {
      const answer = record(await call("GET", "/v1/models", { organization, signal }), "models");
      return list(answer, "data").map((one) => text(record(one, "model"), "id")).map((id) => ({ id, name: id }));
    }
  }
}

/** What a budget can be about, by the type of its scope. */
export const choicesQuery = (organization: string, type: ScopeType) =>
  queryOptions({
    queryKey: ["budget choices", organization, type],
    queryFn: ({ signal }) => choicesOf(type, organization, signal),
    staleTime: 60_000,
  });

const refreshed = (organization: string): Promise<void> => cache.invalidateQueries({ queryKey: budgetsQuery(organization).queryKey });

/**
 * Changes a budget. A limit that is null is left alone by PATCH and taken away by PUT, which finds a budget by its scope,
 * window and action. An alert cannot limit calls at once, so the order depends on what the budget was.
 */
async function changeBudget(organization: string, before: Budget, change: Fields): Promise<void> {
  const put = (more: Fields): Promise<unknown> =>
    call("PUT", PATH, { organization, body: { scope: before.scope, ...change, ...more } });
  const isLess = LIMITS.some((limit) => before.limits[limit] !== null && change[`limit_${limit}`] === null);
  if (isLess && before.isStrict) await put({ window: before.window, action: "reject" });
  await call("PATCH", `${PATH}/${before.id}`, { organization, body: change });
  if (isLess && !before.isStrict) await put({});
}

/** Makes a budget, or changes one. */
export async function saveBudget(
  organization: { readonly id: string; readonly name: string },
  before: Budget | null,
  draft: BudgetDraft,
): Promise<void> {
  const { name } = organization;
  if (before === null) {
    const scope = { type: draft.type, id: draft.type === "org" ? organization.id : draft.id.trim() };
    await call("POST", PATH, { organization: name, body: { scope, ...changeOf(draft) } });
  } else await changeBudget(name, before, changeOf(draft));
  await refreshed(name);
  await cache.invalidateQueries({ queryKey: ["budget usage", name] });
}

export async function deleteBudget(organization: string, id: string): Promise<void> {
  await call("DELETE", `${PATH}/${id}`, { organization });
  await refreshed(organization);
}
