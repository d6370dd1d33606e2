// Messages of conversations in one form, whatever API they were written for.
import { Exact, parseJson } from "../../../lib/json";

/** An image, a recording, a film or a file: data, an address, or an attachment that the server keeps. */
export interface Media {
  /** An address or a data URL; empty if there is none. */
  readonly url: string;
  /** The media type; empty if it is unknown. */
  readonly type: string;
  /** The name of the file; empty if it has none. */
  readonly name: string;
  /** The key of an attachment; empty if it is none. */
  readonly key: string;
}

export const MEDIA_KINDS = ["image", "audio", "video", "file"] as const;

export type MediaKind = (typeof MEDIA_KINDS)[number];

export type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  | { readonly kind: "refusal"; readonly text: string }
  | { readonly kind: MediaKind; readonly media: Media }
  | { readonly kind: "call"; readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly kind: "result"; readonly id: string; readonly output: unknown; readonly isError: boolean }
  | { readonly kind: "other"; readonly value: unknown };

export type ResultPart = Extract<Part, { readonly kind: "result" }>;

export interface Message {
  readonly role: string;
  readonly name: string;
  readonly parts: readonly Part[];
}

export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Exact);

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** The first text among some values that is not empty. */
export const firstText = (...values: readonly unknown[]): string => values.map(textOf).find((text) => text !== "") ?? "";

/** Reads a text that is an object or a list in JSON, or returns it as it is. */
export function parsed(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return parseJson(value);
  } catch {
    return value;
  }
}
