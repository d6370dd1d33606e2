// Checks the form of what the server sends, field by field.
import { UnknownForm } from "../lib/errors";

export type Fields = Readonly<Record<string, unknown>>;

export const isRecord = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function record(value: unknown, what: string): Fields {
  if (!isRecord(value)) throw new UnknownForm(what);
  return value;
}

export function text(fields: Fields, key: string): string {
  const value = fields[key];
  if (typeof value !== "string") throw new UnknownForm(key);
  return value;
}

export const textOrNull = (fields: Fields, key: string): string | null => {
  const value = fields[key];
  return typeof value === "string" ? value : null;
};

export function count(fields: Fields, key: string): number {
  const value = fields[key];
  if (typeof value !== "number" || !Number.isFinite(value)) throw new UnknownForm(key);
  return value;
}

/** A finite number; null for anything else. */
export const numberOrNull = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

/** Reads a flag; anything but `true` is `false`. */
export const flag = (fields: Fields, key: string): boolean => fields[key] === true;

export function list(fields: Fields, key: string): readonly unknown[] {
  const value = fields[key];
  if (!Array.isArray(value)) throw new UnknownForm(key);
  return value;
}
