// Writes the metrics of a span with the units that their names stand for.
import { isRecord, type Fields } from "../../../api/narrow";
import { Exact, numeric } from "../../../lib/json";
import { duration, exactCount, money } from "../../../lib/numbers";
import { clock, day } from "../../../lib/time";
import type { Zone } from "../../../lib/preferences";

export interface Metric {
  readonly name: string;
  /** The path of the metric in its row; null for what is computed. */
  readonly key: string | null;
  readonly text: string;
  readonly value: unknown;
}

const NAMES: Readonly<Record<string, string>> = {
  start: "Start",
  end: "End",
  tokens: "Tokens",
  prompt_tokens: "Prompt tokens",
  completion_tokens: "Completion tokens",
  time_to_first_token: "Time to first token",
  estimated_cost: "Cost",
  cost: "Cost",
};

/** The order of the metrics that are known; others follow by name. */
const FIRST = ["start", "end", "time_to_first_token", "tokens", "prompt_tokens", "completion_tokens", "estimated_cost", "cost"];

/** The name of a metric for people: `prompt_cached_tokens` is "Prompt cached tokens". */
function nameOf(key: string): string {
  const words = NAMES[key] ?? key.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function textOf(key: string, value: unknown, zone: Zone): string {
  const number = numeric(value);
  if (number === null || value instanceof Exact) return String(value);
  if (key === "start" || key === "end") {
    const moment = new Date(number * 1000);
    return Number.isNaN(moment.getTime()) ? String(number) : `${day(moment, zone)} ${clock(moment, zone)}`;
  }
  if (/(?:^|_)cost$/.test(key)) return money(number);
  if (/(?:^|_)(?:duration|latency)$|^time_to_/.test(key)) return duration(number * 1000);
  return Number.isInteger(number) ? exactCount(number) : String(number);
}

/** The metrics of a row, with its duration first, and the cost that the server estimates if the row has none. */
export function metricsOf(row: Fields, estimate: number | null, zone: Zone): readonly Metric[] {
  const metrics = isRecord(row["metrics"]) ? row["metrics"] : {};
  const [start, end] = [numeric(metrics["start"]), numeric(metrics["end"])];
  const keys = Object.keys(metrics).filter((key) => metrics[key] !== null);
  const rank = (key: string): number => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);
  keys.sort((one, other) => rank(one) - rank(other) || one.localeCompare(other));
  const computed: Metric[] = [];
  if (start !== null && end !== null) {
    computed.push({ name: "Duration", key: null, text: duration((end - start) * 1000), value: end - start });
  }
  const hasCost = keys.includes("estimated_cost") || keys.includes("cost");
  if (!hasCost && estimate !== null) computed.push({ name: "Cost", key: null, text: money(estimate), value: estimate });
  return [...computed, ...keys.map((key) => ({ name: nameOf(key), key, text: textOf(key, metrics[key], zone), value: metrics[key] }))];
}
