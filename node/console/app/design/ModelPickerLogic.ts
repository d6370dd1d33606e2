// The parameters of a model call: those that have a field, and how a text becomes one of them.
import { numeric, parseJson, printJson } from "../lib/json";
import { isFields, restOf, type PromptFields } from "./MessageEditorLogic";

export interface NumberParameter {
  readonly key: string;
  readonly title: string;
  readonly least: number;
  /** The greatest value; absent if there is none. */
  readonly most?: number;
  readonly isWhole?: boolean;
}

export const NUMBERS: readonly NumberParameter[] = [
  { key: "temperature", title: "Temperature", least: 0, most: 2 },
  { key: "max_tokens", title: "Most tokens", least: 1, isWhole: true },
  { key: "top_p", title: "Top p", least: 0, most: 1 },
  { key: "frequency_penalty", title: "Frequency penalty", least: -2, most: 2 },
  { key: "presence_penalty", title: "Presence penalty", least: -2, most: 2 },
  { key: "seed", title: "Seed", least: -Infinity, isWhole: true },
];

export const EFFORTS: readonly string[] = ["none", "minimal", "low", "medium", "high"];
export const TOOL_CHOICES: readonly string[] = ["auto", "none", "required"];

const SHOWN: readonly string[] = [
  ...NUMBERS.map(({ key }) => key),
  "response_format",
  "reasoning_effort",
  "tool_choice",
  "use_cache",
];

/** Whether a parameter has a form that its field can show. */
function isShown(key: string, value: unknown): boolean {
  if (!SHOWN.includes(key)) return false;
  if (value === null) return true;
  if (key === "response_format") return isFields(value) && typeof value["type"] === "string";
  if (key === "reasoning_effort" || key === "tool_choice") return typeof value === "string";
  return key === "use_cache" ? typeof value === "boolean" : numeric(value) !== null;
}

const shownKeys = (params: PromptFields): readonly string[] =>
  Object.entries(params).flatMap(([key, value]) => (isShown(key, value) ? [key] : []));

/** The parameters without a field, which are shown as JSON. */
export const otherParameters = (params: PromptFields): PromptFields => restOf(params, shownKeys(params));

export function withOtherParameters(params: PromptFields, other: PromptFields): PromptFields {
  const shown = Object.entries(params).filter(([key, value]) => isShown(key, value));
  return { ...Object.fromEntries(shown), ...other };
}

/** Sets a parameter; undefined takes it away. */
export function withParameter(params: PromptFields, key: string, value: unknown): PromptFields {
  return value === undefined ? restOf(params, [key]) : { ...params, [key]: value };
}

/** The text of a parameter that is a number; empty if it is not set. */
export const numberText = (value: unknown): string => (numeric(value) === null ? "" : printJson(value));

/** Reads the text of a number; undefined for an empty text. */
export function readNumber(text: string, { least, most, isWhole = false }: NumberParameter): { readonly value: number | undefined } | { readonly fault: string } {
  const plain = text.trim();
  if (plain === "") return { value: undefined };
  const value = Number(plain);
  if (!Number.isFinite(value)) return { fault: "This is not a number." };
  if (isWhole && !Number.isInteger(value)) return { fault: "This is a whole number." };
  if (value < least) return { fault: `The least is ${least}.` };
  return most !== undefined && value > most ? { fault: `The most is ${most}.` } : { value };
}

/** The kind of the answer: `text` where nothing is set. */
export function responseKind(params: PromptFields): string {
  const format = params["response_format"];
  return isFields(format) && typeof format["type"] === "string" ? format["type"] : "text";
}

export function withResponseKind(params: PromptFields, kind: string): PromptFields {
  if (kind === "text") return withParameter(params, "response_format", undefined);
  const schema = { name: "answer", strict: true, schema: { type: "object", properties: {}, required: [], additionalProperties: false } };
  return { ...params, response_format: kind === "json_schema" ? { type: kind, json_schema: schema } : { type: kind } };
}

/** Whether a value is what a prompt can have as tools: a list of objects, or a template that becomes one. */
export const isTools = (value: unknown): boolean =>
  Array.isArray(value) ? value.every(isFields) : typeof value === "string" && /\{[{%]/.test(value);

/** Reads the tools of a prompt, which are kept as a text. A text that is no JSON is a template. */
export function readTools(text: string): unknown {
  if (text.trim() === "") return [];
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

export function writeTools(tools: unknown): string {
  if (typeof tools === "string") return tools;
  return Array.isArray(tools) && tools.length === 0 ? "" : printJson(tools, 0);
}

/** The parameters that are set, in a few words: `temperature 0.2 · max_tokens 400`. */
export const parametersInWords = (params: PromptFields): string =>
  Object.entries(params)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => {
      if (key === "response_format") return responseKind(params);
      const text = printJson(value, 0);
      return `${key} ${text.length > 24 ? "…" : text.replaceAll('"', "")}`;
    })
    .join(" · ");
