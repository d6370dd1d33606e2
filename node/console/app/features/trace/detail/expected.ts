// Reads an expected output from what somebody typed, and writes one so that it can be changed.
import { asText, parseJson } from "../../../lib/json";

interface Read {
  readonly value: unknown;
  readonly fault: string | null;
}

/** What a text stands for: nothing, JSON if it begins like it, else itself. */
export function readExpected(text: string): Read {
  const trimmed = text.trim();
  if (trimmed === "") return { value: null, fault: null };
  if (!/^(?:[[{"]|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$|true$|false$|null$)/.test(trimmed)) return { value: text, fault: null };
  try {
    return { value: parseJson(trimmed), fault: null };
  } catch {
    return { value: null, fault: "This begins like JSON but is none. Correct it, or put quotes around a text." };
  }
}

/** The text of a value, so that reading it gives the value again. */
export function editedText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return asText(value);
  const read = readExpected(value);
  return read.fault === null && read.value === value ? value : JSON.stringify(value);
}
