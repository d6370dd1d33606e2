// Rules of retention: their form, their sentences, and what is wrong with one that is entered.
import { isRecord, record, text, textOrNull, type Fields } from "../../api/narrow";
import { numberOrNull, type RetainedKind } from "../../api/usage";
import { exactCount } from "../../lib/numbers";

export const KINDS: readonly RetainedKind[] = ["project_logs", "experiment", "dataset"];

export const KIND_NAMES: Readonly<Record<RetainedKind, string>> = {
  project_logs: "Logs",
  experiment: "Experiments",
  dataset: "Datasets",
};

export interface Rule {
  readonly id: string;
  readonly name: string;
  /** The id of its project; null for a rule of all projects that have none of their own. */
  readonly project: string | null;
  readonly kind: RetainedKind;
  readonly days: number;
}

/** Reads an automation; null for one that is no rule of retention. */
export function readRule(value: unknown): Rule | null {
  const rule = record(value, "automation");
  const config: Fields = isRecord(rule["config"]) ? rule["config"] : {};
  const kind = KINDS.find((one) => one === config["object_type"]);
  const days = numberOrNull(config, "retention_days");
  if (config["event_type"] !== "retention" || kind === undefined || days === null) return null;
  return { id: text(rule, "id"), name: text(rule, "name"), project: textOrNull(rule, "project_id"), kind, days };
}

export const daysText = (days: number): string => `${days < 1000 ? String(days) : exactCount(days)} ${days === 1 ? "day" : "days"}`;

const NOUNS: Readonly<Record<RetainedKind, string>> = {
  project_logs: "logs",
  experiment: "rows of experiments",
  dataset: "rows of datasets",
};

/** A rule as a sentence: `Delete logs of demo older than 30 days`. `project` is the name of its project; null for all. */
export function sentenceOf({ kind, days }: Pick<Rule, "kind" | "days">, project: string | null): string {
  const of = project === null ? " of all projects without a rule of their own" : ` of ${project}`;
  return `Delete ${NOUNS[kind]}${of} older than ${daysText(days)}`;
}

/** The rules that another one of the same project and kind comes before, as the shortest counts. */
export function outdone(rules: readonly Rule[]): ReadonlySet<string> {
  const shortest = new Map<string, Rule>();
  const keyOf = ({ project, kind }: Rule): string => `${kind} ${project ?? ""}`;
  for (const rule of rules) {
    const known = shortest.get(keyOf(rule));
    if (known === undefined || rule.days < known.days) shortest.set(keyOf(rule), rule);
  }
  return new Set(rules.filter((rule) => shortest.get(keyOf(rule)) !== rule).map(({ id }) => id));
}

const YEARS_MAX = 3650;

/** The number of days that a text is; null if it is none. */
export function daysOf(typed: string): number | null {
  const days = /^\d+(?:\.\d+)?$/.test(typed.trim()) ? Number(typed.trim()) : NaN;
  return days <= YEARS_MAX * 10 ? days : null;
}

/** An hour. The server wants a rule that keeps rows for a shorter time confirmed. */
const UNCONFIRMED_DAYS_MIN = 1 / 24;

/** Whether a rule deletes rows so soon after they are written that it has to be confirmed. */
export const isShort = (days: number): boolean => days < UNCONFIRMED_DAYS_MIN;

/** A rule as the server stores it. One that was confirmed says so. */
export function configOf({ kind, days }: Pick<Rule, "kind" | "days">, isConfirmed: boolean): Fields {
  const config = { event_type: "retention", object_type: kind, retention_days: days };
  return isConfirmed ? { ...config, confirm: true } : config;
}

const DAY_MS = 86_400_000;

/** The moment from before which a rule deletes rows, as ISO text. */
export const cutoffOf = (days: number, present: number): string => new Date(present - days * DAY_MS).toISOString();

/** A name for a rule that no other automation of its project has. */
export function freeName(kind: RetainedKind, taken: readonly string[]): string {
  const first = `Retention of ${KIND_NAMES[kind].toLowerCase()}`;
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? first : `${first} ${count}`;
    if (!taken.includes(name)) return name;
  }
}
