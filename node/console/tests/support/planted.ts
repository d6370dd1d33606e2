// What the settings and the reviews show, under names that attack, so that dialogs about it are tried with them too.
import { Refused, type Api } from "./api";
import { textAt } from "./json";
import { promptData } from "./prompts";

/** What the planted names begin with. Nothing else is called so. */
export const PLANTED = "Planted";

const ATTACK = `"><img src=x onerror=alert(1)>`;

/** Longer than any row of demo is old, so that the rule deletes nothing. */
const RETENTION_DAYS = 3650;

/** Makes the environment `production`, which an earlier run may have made. */
async function makeProduction(api: Api): Promise<void> {
  try {
    await api.call("POST", "/environment", { name: "production", slug: "production" });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
}

/** Gives a prompt a second version, and the environment `production` its first one. */
export async function plantVersions(api: Api, prompt: string): Promise<void> {
  const first = textAt(await api.call("GET", `/v1/prompt/${prompt}`), "_xact_id");
  await api.call("PATCH", `/v1/prompt/${prompt}`, { prompt_data: promptData("gpt-4o", "Answer {{question}} in a word.") });
  await makeProduction(api);
  await api.call("PUT", `/environment-object/prompt/${prompt}/production`, { object_version: first });
}

/** Plants a queue of a project, and what the settings list. Nobody is in the group, and no model call reaches the secret. */
export async function plantSettings(api: Api, project: string, suffix: string): Promise<void> {
  const name = `${PLANTED} ${ATTACK}${suffix}`;
  const queue = { search: { filter: [{ text: "error IS NOT NULL", label: name, originType: "btql" }] } };
  const place = { object_type: "project", object_id: project };
  await api.call("POST", "/v1/view", { ...place, view_type: "for_review_project_log", name, view_data: queue, options: { queryShape: "traces" } });
  const group = textAt(await api.call("POST", "/v1/group", { name, description: name }), "id");
  await api.call("POST", "/v1/acl", { ...place, group_id: group, permission: "read" });
  await api.call("POST", "/v1/role", { name, description: name, member_permissions: [{ permission: "read" }] });
  const metadata = { api_base: "http://127.0.0.1:9/v1", models: ["planted-model", name] };
  await api.call("POST", "/v1/env_var", { ...place, name, value: "sk-planted-0123456789", secret_type: "openai", metadata });
  await api.call("POST", "/v1/env_var", { ...place, name: `${PLANTED}_VARIABLE`, value: "planted" });
  await api.call("POST", "/v1/gateway_budget", { scope: { type: "model", id: name }, window: "month", limit_requests: 1_000_000, action: "alert" });
  const config = { event_type: "retention", object_type: "dataset", retention_days: RETENTION_DAYS };
  await api.call("POST", "/v1/project_automation", { project_id: project, name: PLANTED, config });
}
