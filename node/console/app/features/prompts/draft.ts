// The content of a prompt as it is edited: reading its parts, changing them, and comparing versions as text.
import type { PromptRecord } from "../../api/prompts";
import {
  formatOf,
  isFields,
  restOf,
  textsOf,
  variablesOf,
  type PromptFields,
  type TemplateFormat,
} from "../../design/MessageEditorLogic";
import { numeric, printJson } from "../../lib/json";
import { printYaml } from "../../lib/yaml";

const fieldsIn = (fields: PromptFields, key: string): PromptFields => {
  const value = fields[key];
  return isFields(value) ? value : {};
};

const textIn = (fields: PromptFields, key: string): string => {
  const value = fields[key];
  return typeof value === "string" ? value : "";
};

/** Sets a member; one without content is left out unless it was there. */
function withMember(fields: PromptFields, key: string, value: unknown, isEmpty: boolean): PromptFields {
  return isEmpty && !(key in fields) ? fields : isEmpty ? restOf(fields, [key]) : { ...fields, [key]: value };
}

export const promptIn = (data: PromptFields): PromptFields =>
  isFields(data["prompt"]) ? data["prompt"] : { type: "chat", messages: [] };

export const withPrompt = (data: PromptFields, prompt: PromptFields): PromptFields => ({ ...data, prompt });

export const modelIn = (data: PromptFields): string => textIn(fieldsIn(data, "options"), "model");

export const withModel = (data: PromptFields, model: string): PromptFields => ({
  ...data,
  options: withMember(fieldsIn(data, "options"), "model", model, model === ""),
});

export const paramsIn = (data: PromptFields): PromptFields => fieldsIn(fieldsIn(data, "options"), "params");

export const withParams = (data: PromptFields, params: PromptFields): PromptFields => ({
  ...data,
  options: withMember(fieldsIn(data, "options"), "params", params, Object.keys(params).length === 0),
});

export const toolsIn = (data: PromptFields): string => textIn(promptIn(data), "tools");

export const withTools = (data: PromptFields, tools: string): PromptFields =>
  withPrompt(data, withMember(promptIn(data), "tools", tools, tools === ""));

export const formatIn = (data: PromptFields): TemplateFormat => formatOf(data["template_format"]);

export const withFormat = (data: PromptFields, format: TemplateFormat): PromptFields =>
  withMember(data, "template_format", format, format === "mustache" && data["template_format"] !== null);

/** Makes messages of a text, or a text of messages, so that nothing that was written is lost. */
export function withType(data: PromptFields, type: string): PromptFields {
  const prompt = promptIn(data);
  const rest = restOf(prompt, ["type", "messages", "content"]);
  if (type === "completion") return withPrompt(data, { ...rest, type, content: textsOf(restOf(prompt, ["tools"])).join("\n\n") });
  return withPrompt(data, { ...rest, type, messages: [{ role: "user", content: textIn(prompt, "content") }] });
}

export const parserIn = (data: PromptFields): PromptFields | null => (isFields(data["parser"]) ? data["parser"] : null);

/** Whether a value is what a judge can have as choices: a score from 0 to 1 for each. */
export const isChoiceScores = (value: unknown): value is PromptFields =>
  isFields(value) &&
  Object.values(value).every((one) => {
    const score = numeric(one);
    return score !== null && score >= 0 && score <= 1;
  });

/** The names of the variables that the texts need. */
export const variablesIn = (data: PromptFields): readonly string[] => variablesOf(textsOf(promptIn(data)), formatIn(data));

const isJudge = (data: PromptFields): boolean => parserIn(data) !== null;

/**
 * The members that an input should have. `{{input}}` of a prompt is its whole input, so that `{{input.name}}` asks for a
 * member `name`; the input of a judge has a member `input`.
 */
export function membersIn(data: PromptFields): readonly string[] {
  const members = variablesIn(data).flatMap((name) => {
    const [first = "", second] = name.split(".");
    if (isJudge(data) || first !== "input") return [first];
    return second === undefined ? [] : [second];
  });
  return [...new Set(members)];
}

/** The members that an input lacks. */
export const missingIn = (data: PromptFields, input: unknown): readonly string[] =>
  membersIn(data).filter((name) => !isFields(input) || !(name in input));

/** An input with an empty text for each member that it lacks. A prompt that needs no members takes a text. */
export function filledInput(data: PromptFields, input: unknown): unknown {
  const missing = missingIn(data, input);
  if (missing.length === 0) return input ?? (membersIn(data).length === 0 && variablesIn(data).length > 0 ? "" : {});
  return { ...(isFields(input) ? input : {}), ...Object.fromEntries(missing.map((name) => [name, ""])) };
}

export const isSame = (one: unknown, other: unknown): boolean => printJson(one, 0) === printJson(other, 0);

/** A version as text, for comparing: all that a person wrote, without what the console noted. */
export function versionText(record: PromptRecord, data: PromptFields = record.data): string {
  const { whole, hasData, kind } = record;
  const metadata = restOf(fieldsIn(whole, "metadata"), ["__note"]);
  const shown = {
    ...restOf(whole, ["slug", "metadata", "prompt_data", "origin", ...(kind === "prompt" ? ["function_data"] : [])]),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(hasData || Object.keys(data).length > 0 ? { prompt_data: data } : {}),
  };
  return printYaml(shown);
}

/** The score from which on a result of a scorer passes; null if none is set. */
export const thresholdOf = ({ metadata }: PromptRecord): number | null => numeric(metadata["__pass_threshold"]);

/** A slug for a name: small letters, digits and dashes. */
export const slugFor = (name: string): string =>
  name
    .toLowerCase()
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "");
