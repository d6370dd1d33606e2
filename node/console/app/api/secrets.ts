// Requests of AI secrets and environment variables, whose values are sent and never read, and the test call of a secret.
import { call, send } from "./client";
import { readAll, type Named } from "./credentials";
import { isRecord, list, numberOrNull, record, text, textOrNull, type Fields } from "./narrow";

export type ScopeType = "organization" | "project" | "function";

export type SecretKind = "ai_secret" | "env_var";

/** A variable, or a provider's secret: without its value. */
export interface Secret {
  readonly id: string;
  /** Which of the two lists of the server it is in. */
  readonly kind: SecretKind;
  readonly name: string;
  readonly scope: ScopeType;
  readonly objectId: string;
  /** The type of the provider; null for a variable. */
  readonly type: string | null;
  readonly metadata: Fields;
  /** A few letters of the value; null if there is none. */
  readonly preview: string | null;
  /** When the value was set, and by whom. */
  readonly set: string | null;
  readonly setBy: string | null;
}

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});

function readVariable(variable: Fields): Secret & { readonly isProvider: boolean } {
  const scope = text(variable, "object_type");
  return {
    id: text(variable, "id"),
    kind: "env_var",
    name: text(variable, "name"),
    scope: scope === "project" || scope === "function" ? scope : "organization",
    objectId: text(variable, "object_id"),
    type: textOrNull(variable, "secret_type"),
    metadata: fieldsOf(variable["metadata"]),
    preview: textOrNull(variable, "preview_secret"),
    set: textOrNull(variable, "secret_updated_at"),
    setBy: textOrNull(variable, "secret_updated_by_user_id"),
    isProvider: textOrNull(variable, "secret_category") === "ai_provider",
  };
}

const readAiSecret = (secret: Fields): Secret => ({
  id: text(secret, "id"),
  kind: "ai_secret",
  name: text(secret, "name"),
  scope: "organization",
  objectId: text(secret, "org_id"),
  type: textOrNull(secret, "type") ?? "",
  metadata: fieldsOf(secret["metadata"]),
  preview: textOrNull(secret, "preview_secret"),
  set: textOrNull(secret, "secret_updated_at"),
  setBy: textOrNull(secret, "secret_updated_by_user_id"),
});

/** The variables, without the secrets of providers that the server keeps among them. */
export const readVariables = async (organization: string, signal: AbortSignal): Promise<readonly Secret[]> =>
  (await readAll(organization, "/v1/env_var", signal, true)).map(readVariable).filter(({ isProvider }) => !isProvider);

/** The secrets of providers: of the organization, and of its projects. */
export async function readProviders(organization: string, signal: AbortSignal): Promise<readonly Secret[]> {
  const [secrets, variables] = await Promise.all([
    readAll(organization, "/v1/ai_secret", signal, true),
    readAll(organization, "/v1/env_var", signal, true),
  ]);
  return [...secrets.map(readAiSecret), ...variables.map(readVariable).filter(({ isProvider }) => isProvider)];
}

/** What of a secret is written. An absent value leaves the one that is there. */
export interface SecretDraft {
  readonly kind: SecretKind;
  readonly scope: ScopeType;
  readonly objectId: string;
  readonly name: string;
  readonly type: string | null;
  readonly metadata: Fields | null;
  readonly value: string | null;
}

function bodyOf({ kind, name, type, metadata, value }: SecretDraft): Fields {
  const isOwn = kind === "ai_secret";
  return {
    name,
    ...(type === null ? {} : { [isOwn ? "type" : "secret_type"]: type, metadata }),
    ...(value === null ? {} : { [isOwn ? "secret" : "value"]: value }),
  };
}

/** Makes a secret. If the name is taken, the server leaves what is there and gives it back: callers look before. */
export async function makeSecret(organization: string, draft: SecretDraft): Promise<void> {
  const { kind, scope, objectId } = draft;
  const of = kind === "ai_secret" ? {} : { object_type: scope, object_id: objectId };
  await call("POST", `/v1/${kind}`, { organization, body: { ...of, ...bodyOf(draft) }, isExact: true });
}

/** Changes a secret, and tells whether it has a value afterwards. */
export async function changeSecret(organization: string, id: string, draft: SecretDraft): Promise<boolean> {
  const path = `/v1/${draft.kind}/${encodeURIComponent(id)}`;
  const changed = record(await call("PATCH", path, { organization, body: bodyOf(draft), isExact: true }), "secret");
  return textOrNull(changed, "preview_secret") !== null;
}

/** The functions that variables can belong to, with the projects that they are of. */
export async function readFunctions(organization: string, signal: AbortSignal): Promise<readonly (Named & { readonly projectId: string })[]> {
  const functions = await readAll(organization, "/v1/function", signal);
  return functions.map((one) => ({ id: text(one, "id"), name: text(one, "name"), projectId: textOrNull(one, "project_id") ?? "" }));
}

/** The models that a secret serves as far as the server tells: a model is told once, with the first secret that has it. */
export async function readModelsOf(organization: string, secret: Secret, signal: AbortSignal): Promise<readonly string[]> {
  const headers = { ...projectHeader(secret), "x-bt-endpoint-name": headerText(secret.name) };
  const answer = record(await call("GET", "/v1/proxy/models", { organization, headers, signal }), "models");
  return list(answer, "data")
    .filter(isRecord)
    .filter((model) => textOrNull(model, "owned_by") === secret.name)
    .map((model) => text(model, "id"));
}

/** A header holds bytes, so that a name travels as its bytes of UTF-8. */
const headerText = (name: string): string => String.fromCharCode(...new TextEncoder().encode(name));

const projectHeader = ({ scope, objectId }: Secret): Readonly<Record<string, string>> =>
  scope === "project" ? { "x-bt-project-id": objectId } : {};

/** What a test call brought. */
export interface TestAnswer {
  readonly model: string;
  /** The name of the secret that was used. */
  readonly endpoint: string;
  readonly milliseconds: number;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  /** In dollars; null if the model has no price. */
  readonly cost: number | null;
  /** The text of the answer; empty for embeddings. */
  readonly text: string;
}

function answerText(body: Fields): string {
  const [choice] = Array.isArray(body["choices"]) ? body["choices"] : [];
  const message = isRecord(choice) ? choice["message"] : null;
  return isRecord(message) ? (textOrNull(message, "content") ?? "") : "";
}

/** Calls a model with one secret alone, for a few tokens. */
export async function testSecret(
  organization: string,
  secret: Secret,
  model: string,
  isEmbedding: boolean,
  signal: AbortSignal,
): Promise<TestAnswer> {
  const asked = isEmbedding
    ? { model, input: "ping" }
    : { model, max_tokens: 16, messages: [{ role: "user", content: "Answer with the word pong." }] };
  const headers = { ...projectHeader(secret), "x-bt-endpoint-name": headerText(secret.name), "x-bt-use-cache": "never" };
  const path = isEmbedding ? "/v1/proxy/embeddings" : "/v1/proxy/chat/completions";
  const started = performance.now();
  const response = await send("POST", path, { organization, body: asked, headers, signal });
  const answer: unknown = await response.json();
  const milliseconds = performance.now() - started;
  const body = record(answer, "answer");
  const usage = isRecord(body["usage"]) ? body["usage"] : {};
  const cost = Number(response.headers.get("x-bt-cost") ?? NaN);
  return {
    model: response.headers.get("x-bt-used-model") ?? model,
    endpoint: response.headers.get("x-bt-used-endpoint") ?? "",
    milliseconds,
    promptTokens: numberOrNull(usage["prompt_tokens"]),
    completionTokens: numberOrNull(usage["completion_tokens"]),
    cost: Number.isFinite(cost) ? cost : null,
    text: answerText(body),
  };
}
