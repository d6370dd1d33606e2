// What has changed since the last visit, in words: new objects, failing traces that became more or fewer, new errors.
import { literal, called } from "../../btql/write";

/** An object that was made since the last visit. */
export interface MadeObject {
  readonly kind: "project" | "experiment" | "dataset" | "prompt";
  readonly id: string;
  readonly name: string;
  /** Its project: the id. */
  readonly project: string;
  readonly created: number;
  /** What addresses name it by, where that is not its name. */
  readonly slug: string | null;
}

/** How many of the traces of a project fail, since the last visit and in as long a time before. */
export interface Counts {
  readonly traces: number;
  readonly failed: number;
}

export interface RateChange {
  readonly project: string;
  readonly before: number;
  readonly since: number;
}

/** Fewer traces than these say nothing about a rate. */
const FEWEST = 20;
/** How many standard errors a difference has to have. */
const CLEAR = 2.5;
const LEAST = 0.005;

/** The change of a rate, if it is more than chance; else null. */
export function rateChange(project: string, before: Counts, since: Counts): RateChange | null {
  if (before.traces < FEWEST || since.traces < FEWEST) return null;
  const [old, now] = [before.failed / before.traces, since.failed / since.traces];
  const all = (before.failed + since.failed) / (before.traces + since.traces);
  const error = Math.sqrt(all * (1 - all) * (1 / before.traces + 1 / since.traces));
  const difference = Math.abs(now - old);
  return difference < LEAST || difference < CLEAR * error ? null : { project, before: old, since: now };
}

/** A text of an error as the logs have it. */
export interface ErrorText {
  readonly project: string;
  readonly text: string;
  readonly count: number;
  /** When it first came, in the time that was looked at. */
  readonly first: number;
}

export interface ErrorKind {
  readonly project: string;
  /** Its texts, of which the first is shown. */
  readonly texts: readonly string[];
  readonly count: number;
  readonly first: number;
}

/** An error without what differs from one time to the next: numbers and ids. */
export const kindOf = (text: string): string =>
  (text.split("\n", 1)[0] ?? "").replaceAll(/[\da-f]{8}(?:-[\da-f]{4,12}){3,4}|0x[\da-f]+|\d+(?:\.\d+)?/gi, "#");

/** The kinds of errors that no text of was there before a moment, the most frequent first. */
export function newKinds(texts: readonly ErrorText[], since: number): readonly ErrorKind[] {
  const kinds = new Map<string, ErrorKind>();
  for (const { project, text, count, first } of texts) {
    const key = `${project} ${kindOf(text)}`;
    const known = kinds.get(key) ?? { project, texts: [], count: 0, first };
    kinds.set(key, {
      project,
      texts: [...known.texts, text],
      count: known.count + count,
      first: Math.min(known.first, first),
    });
  }
  return [...kinds.values()].filter(({ first }) => first >= since).sort((a, b) => b.count - a.count);
}

/** How much of each error is looked at. */
export const ERROR_LENGTH = 200;

/** The condition that a row has an error of a kind. */
export function kindCondition({ texts }: ErrorKind): string {
  const [first = ""] = texts;
  if (texts.length === 1 && first.length < ERROR_LENGTH) return `to_string(error) = ${literal(first)}`;
  let length = first.length;
  for (const text of texts) while (!text.startsWith(first.slice(0, length))) length -= 1;
  return called("starts_with", "to_string(error)", literal(first.slice(0, length)));
}

/** A share: `0.4 %`, `12 %`. */
export function percentText(share: number): string {
  const percent = share * 100;
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
}

const DAY_MS = 86_400_000;
/** How far back changes are looked for. */
const LONGEST_MS = 30 * DAY_MS;
const WEEK_MS = 7 * DAY_MS;

export interface Periods {
  /** From when on something counts as new. */
  readonly since: number;
  /** The start of the time that rates are compared with, which is as long. */
  readonly before: number;
  /** The start of the time in which errors are known. */
  readonly known: number;
}

export function periodsOf(visited: number, present: number): Periods {
  const since = Math.max(visited, present - LONGEST_MS);
  const before = since - (present - since);
  return { since, before, known: Math.min(before, since - WEEK_MS) };
}
