// The providers of models that the server knows: their names, addresses, fields, and what their secrets are.

/** A field of a provider's metadata. */
export interface ProviderField {
  readonly key: string;
  readonly title: string;
  readonly hint?: string;
  readonly isRequired?: boolean;
  /** Whether few people need it. */
  readonly isRare?: boolean;
  /** The values to choose from, with their words; the first is the default. */
  readonly choices?: readonly (readonly [value: string, words: string])[];
}

export interface Provider {
  readonly type: string;
  readonly title: string;
  /** The name that its secret usually has. */
  readonly name: string;
  /** Where calls go by default, without a scheme; empty if the base URL has to be given. */
  readonly base: string;
  readonly fields: readonly ProviderField[];
}

const base = (isRequired: boolean, hint: string): ProviderField => ({ key: "api_base", title: "Base URL", hint, isRequired });

const authType = (key: string, ...choices: readonly (readonly [string, string])[]): ProviderField => ({
  key,
  title: "Sign in with",
  choices,
});

const FEDERATED = ["workload_identity_federation", "Workload identity federation"] as const;
const BEARER = ["oauth_bearer", "OAuth bearer token"] as const;
const KEY = ["api_key", "API key"] as const;

const OWN_BASE = base(false, "Empty for the provider's own address.");

const openAi = (field: ProviderField): readonly ProviderField[] => [
  field,
  authType("auth_type", KEY, BEARER, FEDERATED),
  {
    key: "auth_format",
    title: "Header of the secret",
    choices: [["bearer", "Authorization: Bearer"], ["api_key", "Authorization: Api-Key"]],
    isRare: true,
  },
  { key: "organization_id", title: "Organization at the provider", isRare: true },
  { key: "endpoint_path", title: "Path", hint: "Replaces paths such as /chat/completions.", isRare: true },
];

/** A server of the OpenAI format is a secret of this type with a base URL. */
export const COMPATIBLE = "compatible";

const plain = (type: string, title: string, address: string, name = `${type.toUpperCase()}_API_KEY`): Provider => ({
  type,
  title,
  name,
  base: address,
  fields: [OWN_BASE],
});

export const PROVIDERS: readonly Provider[] = [
  { ...plain("openai", "OpenAI", "api.openai.com/v1"), fields: openAi(OWN_BASE) },
  {
    ...plain("anthropic", "Anthropic", "api.anthropic.com/v1"),
    fields: [OWN_BASE, authType("auth_type", KEY, BEARER, FEDERATED)],
  },
  plain("google", "Google Gemini", "generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY"),
  {
    ...plain("azure", "Azure OpenAI", "", "AZURE_DEFAULT_CREDENTIALS"),
    fields: [
      base(true, "The address of the resource."),
      authType("auth_type", KEY, ["entra_api", "Entra, client secret"], ["entra_oidc", "Entra, federated"], ["entra_bearer", "Entra, bearer token"]),
      { key: "deployment", title: "Deployment", hint: "Empty to use the name of the model." },
      { key: "api_version", title: "API version", hint: "2023-07-01-preview by default." },
    ],
  },
  { ...plain("azure_ai_gateway", "Azure AI gateway", ""), fields: [base(true, "The address of the gateway.")] },
  {
    ...plain("bedrock", "Amazon Bedrock", "", "AWS_DEFAULT_CREDENTIALS"),
    fields: [
      { key: "region", title: "Region", hint: "us-east-1 by default." },
      authType("auth_type", ["iam_credentials", "Access key"], KEY, ["assume_role", "Assumed role"]),
      { key: "access_key", title: "Access key id", hint: "The secret is the secret access key." },
      { key: "role_arn", title: "Role ARN" },
      { key: "external_id", title: "External id", isRare: true },
      base(false, "Empty for the endpoint of the region."),
    ],
  },
  {
    ...plain("vertex", "Google Vertex AI", "", "GOOGLE_DEFAULT_CREDENTIALS"),
    fields: [
      { key: "project", title: "Project at Google", isRequired: true },
      { key: "location", title: "Location", hint: "us-central1 by default, us-east5 for models of Anthropic." },
      authType("authType", ["access_token", "Access token"], BEARER, ["service_account_key", "Service account key"], FEDERATED),
      base(false, "Empty for the endpoint of the location."),
    ],
  },
  {
    ...plain("databricks", "Databricks", "", "DATABRICKS_DEFAULT_CREDENTIALS"),
    fields: [
      base(true, "The address of the workspace."),
      authType("auth_type", ["pat", "Personal access token"], ["service_principal_oauth", "Service principal"]),
    ],
  },
  plain("mistral", "Mistral", "api.mistral.ai/v1"),
  plain("cohere", "Cohere", "api.cohere.com/compatibility/v1"),
  plain("ollama", "Ollama", "127.0.0.1:11434/v1", "OLLAMA_DEFAULT_CREDENTIALS"),
  plain("groq", "Groq", "api.groq.com/openai/v1"),
  plain("together", "Together", "api.together.xyz/v1"),
  plain("fireworks", "Fireworks", "api.fireworks.ai/inference/v1"),
  plain("perplexity", "Perplexity", "api.perplexity.ai"),
  plain("xAI", "xAI", "api.x.ai/v1", "XAI_API_KEY"),
  plain("cerebras", "Cerebras", "api.cerebras.ai/v1"),
  plain("openrouter", "OpenRouter", "openrouter.ai/api/v1"),
  plain("baseten", "Baseten", "inference.baseten.co/v1"),
];

/** What new secrets are offered for: the known providers, and any server of the OpenAI format. */
export const OFFERED: readonly Provider[] = [
  { type: COMPATIBLE, title: "OpenAI-compatible server", name: "", base: "", fields: openAi(base(true, "Such as that of vLLM, with /v1 at its end.")) },
  ...PROVIDERS,
];

/** The types that the server keeps secrets of, but calls no models with. */
const KEPT_ONLY: ReadonlySet<string> = new Set(["replicate", "lepton", "braintrust", "js"]);

export const isCallable = (type: string): boolean => !KEPT_ONLY.has(type);

/** A provider by its type. One that is unknown here has a base URL at most. */
export const providerOf = (type: string): Provider =>
  OFFERED.find((one) => one.type === type) ?? plain(type, type === "" ? "No provider" : type, "");

/** The type as the server knows it. */
export const serverType = (type: string): string => (type === COMPATIBLE ? "openai" : type);

/** What the secret of a provider is, by how it signs in. */
export function secretHint(type: string, auth: string): string {
  switch (auth) {
    case "entra_api":
      return "JSON with client_id, client_secret, tenant_id, and scope if it is another than the usual.";
    case "entra_oidc":
    case "workload_identity_federation":
      return "JSON that names the trusted identity.";
    case "service_account_key":
      return "The key file of the service account, which is JSON.";
    case "service_principal_oauth":
      return "JSON with client_id and client_secret.";
    default:
      return type === "ollama" ? "Empty for a server without keys." : "It is encrypted, and never shown again.";
  }
}

/** Whether a secret is a longer text, such as a key file. */
export const isLongSecret = (auth: string): boolean =>
  ["entra_api", "entra_oidc", "workload_identity_federation", "service_account_key", "service_principal_oauth"].includes(auth);

type Fields = Readonly<Record<string, unknown>>;

/** What decides where a secret is sent. */
const TARGETS = ["api_base", "token_url", "region", "location"];

/** Whether a change of the metadata sends the secret elsewhere, so that the server drops a key that is not entered again. */
export const leadsElsewhere = (before: Fields, after: Fields): boolean =>
  TARGETS.some((key) => (before[key] ?? "") !== (after[key] ?? ""));

/** The address that a provider is called at, without its scheme. */
export function addressOf(type: string, metadata: Fields): string {
  const own = metadata["api_base"];
  return typeof own === "string" && own !== "" ? own.replace(/^https?:[/]{2}/, "") : providerOf(type).base;
}
