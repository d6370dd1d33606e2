// The fields that can be filtered by: those that every row has, and those that were found in the rows.
import { isScalar, type FieldType, type KnownField, type KnownValue, type Step } from "../../../btql";
import type { Fields } from "../../../api/narrow";
import { isRecord } from "../../../api/narrow";

const field = (type: FieldType, ...path: readonly Step[]): KnownField => ({ path, type, values: [] });

/** Fields that every row has, or may have. */
export const FIXED_FIELDS: readonly KnownField[] = [
  field("string", "span_attributes", "name"),
  field("string", "span_attributes", "type"),
  field("object", "error"),
  field("array", "tags"),
  field("string", "metadata", "model"),
  field("object", "input"),
  field("object", "output"),
  field("object", "expected"),
  field("number", "metrics", "duration"),
  field("number", "metrics", "total_tokens"),
  field("number", "metrics", "estimated_cost"),
  field("number", "metrics", "time_to_first_token"),
  field("time", "created"),
  field("boolean", "is_root"),
  field("string", "id"),
  field("string", "span_id"),
  field("string", "root_span_id"),
  field("array", "span_parents"),
  field("object", "metadata"),
  field("object", "scores"),
  field("object", "comments"),
];

const TYPES: readonly FieldType[] = ["string", "number", "boolean", "object", "array"];

interface Found {
  readonly field: KnownField;
  readonly count: number;
}

function valueOf(value: unknown): readonly KnownValue[] {
  if (!isRecord(value)) return [];
  const { value: one, count } = value;
  return isScalar(one) && typeof count === "number" ? [{ value: one, count }] : [];
}

function foundOf(row: Fields): Found | null {
  const { name, type, count, top_values: values } = row;
  const known = TYPES.find((one) => one === type);
  if (known === undefined || !Array.isArray(name) || typeof count !== "number") return null;
  const path = name.filter((step) => typeof step === "string");
  if (path.length === 0 || path.length !== name.length) return null;
  return { field: { path, type: known, values: Array.isArray(values) ? values.flatMap(valueOf) : [] }, count };
}

export const fieldKey = (path: readonly Step[]): string => JSON.stringify(path);

/** Whether a field of this column is an object that only holds others. */
const isContainer = ({ path, type }: KnownField): boolean => type === "object" && path.length === 1;

/** Reads the rows of an inference. A path with values of several types has the most frequent one. */
export function knownFields(rows: readonly Fields[]): readonly KnownField[] {
  const byPath = new Map<string, Found>();
  for (const row of rows) {
    const found = foundOf(row);
    if (found === null || isContainer(found.field)) continue;
    const key = fieldKey(found.field.path);
    const before = byPath.get(key);
    if (before === undefined || before.count < found.count) byPath.set(key, found);
  }
  return [...byPath.values()].map((found) => found.field);
}

/** The fields that every row has, with what was found of them, and then those that were found besides. */
export function mergedFields(found: readonly KnownField[]): readonly KnownField[] {
  const byPath = new Map(found.map((one) => [fieldKey(one.path), one]));
  const fixed = FIXED_FIELDS.map((one) => byPath.get(fieldKey(one.path)) ?? one);
  const isFixed = new Set(FIXED_FIELDS.map((one) => fieldKey(one.path)));
  return [...fixed, ...found.filter((one) => !isFixed.has(fieldKey(one.path)))];
}
