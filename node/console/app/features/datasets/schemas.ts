// The JSON schemas of a dataset's fields, and a check by the part of JSON Schema that says something about one value.
//
// Checked are `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`, `prefixItems`, the
// limits of lengths and numbers, `anyOf`, `oneOf`, `allOf`, `not` and references within the schema. `pattern` is not:
// a pattern is somebody else's program, and some run for ever. Unknown words are passed over.
import { isRecord, type Fields } from "../../api/narrow";
import { canonical, isSame, type Field } from "./cells";

export type Schemas = Readonly<Partial<Record<Field, unknown>>>;

const MOST_DEPTH = 64;
/** How many schemas one check looks at; a schema may refer to itself in many ways. */
const MOST_STEPS = 20_000;

/** The schemas that the metadata of a dataset holds, under `__schemas`, `schemas`, or `schema.properties`. */
export function schemasOf(metadata: Fields | null): Schemas {
  if (metadata === null) return {};
  const whole = metadata["schema"];
  const sources = [metadata["__schemas"], metadata["schemas"], isRecord(whole) ? (whole["properties"] ?? whole) : null];
  const found = sources.find(isRecord);
  if (found === undefined) return {};
  const fields: readonly Field[] = ["input", "expected", "metadata", "tags"];
  return Object.fromEntries(fields.flatMap((field) => (isSchema(found[field]) ? [[field, found[field]]] : [])));
}

const isSchema = (value: unknown): boolean => isRecord(value) || typeof value === "boolean";

const numberOf = (schema: Fields, key: string): number | null => {
  const value = schema[key];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
};

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}

function hasType(value: unknown, type: unknown): boolean {
  if (type === "integer") return typeof value === "number" && Number.isInteger(value);
  return typeName(value) === type;
}

interface At {
  readonly root: unknown;
  /** Where the value is, as in `.messages[0]`; empty for the whole. */
  readonly path: string;
  readonly depth: number;
  /** How many more schemas are looked at. */
  readonly budget: { left: number };
}

type Check = (schema: Fields, value: unknown, at: At) => string | null;

const said = ({ path }: At, words: string): string => `${path === "" ? "The value" : path} ${words}.`;

const checkType: Check = ({ type }, value, at) => {
  if (type === undefined) return null;
  const types = Array.isArray(type) ? type : [type];
  if (types.some((one) => hasType(value, one))) return null;
  return said(at, `is ${typeName(value)}, not ${types.join(" or ")}`);
};

const checkValues: Check = (schema, value, at) => {
  const values = schema["enum"];
  if (Array.isArray(values) && !values.some((one) => isSame(one, value))) {
    return said(at, `is not one of ${values.slice(0, 6).map((one) => JSON.stringify(one)).join(", ")}`);
  }
  if ("const" in schema && !isSame(schema["const"], value)) return said(at, `is not ${JSON.stringify(schema["const"])}`);
  return null;
};

const LIMITS: readonly (readonly [string, (value: number, limit: number) => boolean, string])[] = [
  ["minimum", (value, limit) => value >= limit, "is less than"],
  ["maximum", (value, limit) => value <= limit, "is more than"],
  ["exclusiveMinimum", (value, limit) => value > limit, "is not more than"],
  ["exclusiveMaximum", (value, limit) => value < limit, "is not less than"],
];

const checkNumber: Check = (schema, value, at) => {
  if (typeof value !== "number") return null;
  for (const [key, holds, words] of LIMITS) {
    const limit = numberOf(schema, key);
    if (limit !== null && !holds(value, limit)) return said(at, `${words} ${limit}`);
  }
  const step = numberOf(schema, "multipleOf");
  if (step === null || step <= 0) return null;
  const times = value / step;
  return Math.abs(times - Math.round(times)) < 1e-9 ? null : said(at, `is not a multiple of ${step}`);
};

function checkSize(schema: Fields, size: number, least: string, most: string, noun: string, at: At): string | null {
  const [min, max] = [numberOf(schema, least), numberOf(schema, most)];
  if (min !== null && size < min) return said(at, `has ${size} ${noun}, fewer than ${min}`);
  return max !== null && size > max ? said(at, `has ${size} ${noun}, more than ${max}`) : null;
}

const checkText: Check = (schema, value, at) =>
  typeof value === "string" ? checkSize(schema, [...value].length, "minLength", "maxLength", "characters", at) : null;

const checkList: Check = (schema, value, at) => {
  if (!Array.isArray(value)) return null;
  const size = checkSize(schema, value.length, "minItems", "maxItems", "items", at);
  if (size !== null) return size;
  if (schema["uniqueItems"] === true && new Set(value.map(canonical)).size < value.length) return said(at, "has an item twice");
  const firsts = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"] : [];
  for (const [index, item] of value.entries()) {
    const own = index < firsts.length ? firsts[index] : schema["items"];
    const fault = own === undefined ? null : fit(own, item, below(at, `[${index}]`));
    if (fault !== null) return fault;
  }
  return null;
};

const below = (at: At, step: string): At => ({ ...at, path: at.path + step, depth: at.depth + 1 });

const checkObject: Check = (schema, value, at) => {
  if (!isRecord(value)) return null;
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const missing = required.find((key) => typeof key === "string" && !Object.hasOwn(value, key));
  if (missing !== undefined) return said(at, `lacks ${JSON.stringify(missing)}`);
  const known = isRecord(schema["properties"]) ? schema["properties"] : {};
  for (const [key, inner] of Object.entries(value)) {
    const isKnown = Object.hasOwn(known, key);
    const own = isKnown ? known[key] : schema["additionalProperties"];
    if (own === undefined) continue;
    if (own === false && !isKnown) return said(at, `has ${JSON.stringify(key)}, which the schema does not know`);
    const fault = fit(own, inner, below(at, `.${key}`));
    if (fault !== null) return fault;
  }
  return checkSize(schema, Object.keys(value).length, "minProperties", "maxProperties", "keys", at);
};

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const checkChoices: Check = (schema, value, at) => {
  const inner = below(at, "");
  for (const one of listOf(schema["allOf"])) {
    const fault = fit(one, value, inner);
    if (fault !== null) return fault;
  }
  const any = listOf(schema["anyOf"]);
  if (any.length > 0 && any.every((one) => fit(one, value, inner) !== null)) return said(at, "fits none of the allowed forms");
  const one = listOf(schema["oneOf"]);
  const fitting = one.filter((form) => fit(form, value, inner) === null).length;
  if (one.length > 0 && fitting !== 1) {
    return said(at, fitting === 0 ? "fits none of the allowed forms" : "fits several forms, and may fit one only");
  }
  return schema["not"] !== undefined && fit(schema["not"], value, inner) === null ? said(at, "fits a form that is not allowed") : null;
};

/** What a reference within the schema means; undefined for others. */
function referred(root: unknown, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  let found = root;
  for (const step of reference.slice(1).split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isRecord(found) || !Object.hasOwn(found, key)) return undefined;
    found = found[key];
  }
  return found;
}

const checkReference: Check = (schema, value, at) => {
  const reference = schema["$ref"];
  if (typeof reference !== "string") return null;
  const found = referred(at.root, reference);
  return found === undefined ? null : fit(found, value, below(at, ""));
};

const CHECKS = [checkType, checkValues, checkNumber, checkText, checkList, checkObject, checkReference, checkChoices];

function fit(schema: unknown, value: unknown, at: At): string | null {
  if (schema === false) return said(at, "is not allowed");
  at.budget.left -= 1;
  if (!isRecord(schema) || at.depth > MOST_DEPTH || at.budget.left < 0) return null;
  for (const check of CHECKS) {
    const fault = check(schema, value, at);
    if (fault !== null) return fault;
  }
  return null;
}

/** What does not fit a schema, in words; null if the value fits. */
export const misfitOf = (schema: unknown, value: unknown): string | null =>
  schema === undefined
    ? null
    : fit(schema, value, { root: schema, path: "", depth: 0, budget: { left: MOST_STEPS } });
