// How inputs, outputs and errors are written in cells.
import type { Cell, Trial } from "../../api/comparison";
import { NOTHING } from "../../lib/numbers";

const MOST = 400;

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isMessage = (value: unknown): boolean => isRecord(value) && "role" in value && "content" in value;

/** The text of the last message of a chat; null if the value is none. */
function lastMessage(value: unknown): string | null {
  const messages = isRecord(value) && Array.isArray(value["messages"]) ? value["messages"] : value;
  const last: unknown = Array.isArray(messages) && messages.every(isMessage) ? messages.at(-1) : null;
  const content = isRecord(last) ? last["content"] : null;
  return typeof content === "string" ? content : null;
}

const short = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

/** From this length on, the first text of an object speaks for itself. */
const LONG = 16;

/** The members of an object without braces and quotes. A first one that is long text has no name: `How do I .., lang: de`. */
function membersOf(value: Readonly<Record<string, unknown>>): string {
  const members = Object.entries(value);
  return members
    .map(([key, member], index) => {
      const isPlain = index === 0 && typeof member === "string" && (members.length === 1 || member.length >= LONG);
      return isPlain ? member : `${key}: ${short(member)}`;
    })
    .join(", ");
}

/** A value in one line: texts as they are, of a chat its last message, objects by their members, the rest as JSON. */
export function lineOf(value: unknown): string {
  if (value === null || value === undefined) return NOTHING;
  if (value === "") return '""';
  const text = lastMessage(value) ?? (isRecord(value) && Object.keys(value).length > 0 ? membersOf(value) : short(value));
  return text.replace(/\s+/g, " ").slice(0, MOST);
}

/** A value in several lines; JSON that is text is laid out too. */
export function blockOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  if (!/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

/** The message of an error: its text, or the text inside of what SDKs send as objects. */
export function errorLine(error: unknown): string {
  if (typeof error === "object" && error !== null && "message" in error && typeof error.message === "string") {
    return lineOf(error.message);
  }
  return lineOf(error);
}

/** What a trial came to, in one line. */
export const outcomeOf = (trial: Trial): string => (trial.error === null ? lineOf(trial.output) : errorLine(trial.error));

export interface Outcome {
  readonly text: string;
  readonly isError: boolean;
  readonly count: number;
}

/** The different outcomes of the trials of a cell, the most frequent first. */
export function outcomesOf({ trials }: Cell): readonly Outcome[] {
  const found = new Map<string, Outcome>();
  for (const trial of trials) {
    const isError = trial.error !== null;
    const text = outcomeOf(trial);
    const key = `${isError} ${text}`;
    found.set(key, { text, isError, count: (found.get(key)?.count ?? 0) + 1 });
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}

/** The spread of a score or metric over the trials of a cell: their standard deviation; null of fewer than two. */
export function spreadOf({ trials }: Cell, name: string): number | null {
  const isMetric = name.startsWith("metrics.");
  const values = trials.flatMap(({ scores, metrics }) => {
    const value = isMetric ? metrics[name.slice(8)] : scores[name];
    return value === undefined ? [] : [value];
  });
  if (values.length < 2) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
}
