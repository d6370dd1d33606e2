// The form of a provider's metadata: fields for what is known, and JSON for everything else, which is kept as it is.
import { Exact, numeric, parseJson, printJson } from "../../lib/json";
import { providerOf } from "./providers";

export type Fields = Readonly<Record<string, unknown>>;

export interface CustomModel {
  readonly name: string;
  readonly format: string;
  readonly flavor: string;
  /** Dollars for a million tokens, as text; empty for none. */
  readonly input: string;
  readonly output: string;
  /** Everything else of the model. */
  readonly rest: Fields;
}

export interface ProviderForm {
  /** The fields of the provider that are texts, by their keys. */
  readonly texts: Readonly<Record<string, string>>;
  /** The only models that may be called, a line each; empty for all. */
  readonly models: string;
  readonly custom: readonly CustomModel[];
  /** Headers of every call, `name: value` in a line each. */
  readonly headers: string;
  /** Everything else, as JSON. */
  readonly other: string;
}

export const FORMATS: readonly string[] = ["openai", "anthropic", "google", "converse"];
export const FLAVORS: readonly string[] = ["chat", "completion", "embedding"];

const INPUT = "input_cost_per_mil_tokens";
const OUTPUT = "output_cost_per_mil_tokens";

export const EMPTY_MODEL: CustomModel = { name: "", format: "openai", flavor: "chat", input: "", output: "", rest: {} };

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Exact);

const isLine = (value: unknown): value is string => typeof value === "string" && value !== "" && value === value.trim() && !value.includes("\n");

const isLines = (value: unknown): value is readonly string[] => Array.isArray(value) && value.length > 0 && value.every(isLine);

/** Texts that a form shows and gives back unchanged. */
const isHeaders = (value: unknown): value is Readonly<Record<string, string>> =>
  isFields(value) &&
  Object.keys(value).length > 0 &&
  Object.entries(value).every(([name, text]) => isLine(name) && !name.includes(":") && isLine(text));

const without = (fields: Fields, keys: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.includes(key)));

function modelOf(name: string, spec: Fields): CustomModel {
  const word = (key: string, known: readonly string[]): string => {
    const value = spec[key];
    return typeof value === "string" && known.includes(value) ? value : "";
  };
  const price = (key: string): string => (numeric(spec[key]) === null ? "" : printJson(spec[key]));
  const parts = { format: word("format", FORMATS), flavor: word("flavor", FLAVORS), [INPUT]: price(INPUT), [OUTPUT]: price(OUTPUT) };
  const shown = Object.entries(parts).flatMap(([key, value]) => (value === "" ? [] : [key]));
  return {
    name,
    format: parts.format,
    flavor: parts.flavor,
    input: price(INPUT),
    output: price(OUTPUT),
    rest: without(spec, shown),
  };
}

const isModels = (value: unknown): value is Readonly<Record<string, Fields>> =>
  isFields(value) &&
  Object.keys(value).length > 0 &&
  Object.entries(value).every(([name, spec]) => isLine(name) && isFields(spec));

/** The form that shows metadata. */
export function formOf(type: string, metadata: Fields): ProviderForm {
  const { models, customModels, additionalHeaders } = metadata;
  const texts = Object.fromEntries(
    providerOf(type).fields.flatMap(({ key }) => {
      const value = metadata[key];
      return isLine(value) ? [[key, value]] : [];
    }),
  );
  const shown = [
    ...Object.keys(texts),
    ...(isLines(models) ? ["models"] : []),
    ...(isModels(customModels) ? ["customModels"] : []),
    ...(isHeaders(additionalHeaders) ? ["additionalHeaders"] : []),
  ];
  const other = without(metadata, shown);
  return {
    texts,
    models: isLines(models) ? models.join("\n") : "",
    custom: isModels(customModels) ? Object.entries(customModels).map(([name, spec]) => modelOf(name, spec)) : [],
    headers: isHeaders(additionalHeaders) ? Object.entries(additionalHeaders).map(([name, value]) => `${name}: ${value}`).join("\n") : "",
    other: Object.keys(other).length === 0 ? "" : printJson(other),
  };
}

const linesOf = (text: string): readonly string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** What is wrong with a form, in a sentence. */
class FormFault extends Error {}

function priceOf(text: string, name: string): unknown {
  const plain = text.trim();
  if (plain === "") return undefined;
  if (!/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(plain)) throw new FormFault(`A price of the model ${name} is not a number.`);
  return parseJson(plain);
}

function specOf({ name, format, flavor, input, output, rest }: CustomModel): readonly [string, Fields] {
  const spec = {
    ...rest,
    format: format === "" ? undefined : format,
    flavor: flavor === "" ? undefined : flavor,
    [INPUT]: priceOf(input, name),
    [OUTPUT]: priceOf(output, name),
  };
  const kept = Object.entries(spec).filter(([key, value]) => value !== undefined || key in rest);
  return [name.trim(), Object.fromEntries(kept.map(([key, value]) => [key, value === undefined ? rest[key] : value]))];
}

function modelsOf(custom: readonly CustomModel[]): Readonly<Record<string, Fields>> {
  const names = custom.map(({ name }) => name.trim());
  if (names.includes("")) throw new FormFault("A custom model has no name.");
  const twice = names.find((name, place) => names.indexOf(name) !== place);
  if (twice !== undefined) throw new FormFault(`Two custom models have the name ${twice}.`);
  return Object.fromEntries(custom.map(specOf));
}

function headersOf(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const [, name = "", value = ""] = /^([^:\s][^:]*):\s*(\S.*)$/.exec(line) ?? [];
      if (name === "") throw new FormFault(`“${line}” is not a header: write its name, a colon and its value.`);
      return [name.trim(), value];
    }),
  );
}

function otherOf(text: string): Fields {
  if (text.trim() === "") return {};
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw new FormFault("The other metadata are not JSON.");
  }
  if (!isFields(value)) throw new FormFault("The other metadata have to be a JSON object.");
  return value;
}

function built(type: string, form: ProviderForm): Fields {
  const fields = providerOf(type).fields;
  const missing = fields.find(({ key, isRequired }) => isRequired === true && (form.texts[key] ?? "").trim() === "");
  if (missing !== undefined) throw new FormFault(`${missing.title} is missing.`);
  const texts = fields.flatMap(({ key }) => {
    const value = (form.texts[key] ?? "").trim();
    return value === "" ? [] : [[key, value]];
  });
  const models = linesOf(form.models);
  return {
    ...otherOf(form.other),
    ...Object.fromEntries(texts),
    ...(models.length === 0 ? {} : { models }),
    ...(form.custom.length === 0 ? {} : { customModels: modelsOf(form.custom) }),
    ...(linesOf(form.headers).length === 0 ? {} : { additionalHeaders: headersOf(form.headers) }),
  };
}

/** The metadata that a form says, or what is wrong with it. */
export function metadataOf(type: string, form: ProviderForm): { readonly metadata: Fields } | { readonly fault: string } {
  try {
    return { metadata: built(type, form) };
  } catch (error) {
    if (error instanceof FormFault) return { fault: error.message };
    throw error;
  }
}

/** The models that metadata name: those that may be called, or else the custom ones. */
export function namedModels(metadata: Fields): readonly string[] {
  const { models, customModels } = metadata;
  if (isLines(models)) return models;
  return isFields(customModels) ? Object.keys(customModels) : [];
}

/** Whether a model makes embeddings, as its own description or its name says. */
export function isEmbedding(metadata: Fields, model: string): boolean {
  const { customModels } = metadata;
  const spec = isFields(customModels) ? customModels[model] : null;
  const flavor = isFields(spec) ? spec["flavor"] : null;
  return typeof flavor === "string" ? flavor === "embedding" : /\bembed/i.test(model);
}
