// Scores and metrics: how they are called and written, which direction is good, and what a difference means.
import type { Change } from "../../api/comparison";
import type { DeltaTone } from "../../design/Delta";
import { duration, money, NOTHING, score as scoreText, shortCount } from "../../lib/numbers";

type Unit = "score" | "seconds" | "dollars" | "count";

export interface Measure {
  /** The name as requests have it: a score, or `metrics.` and the name of a metric. */
  readonly name: string;
  readonly title: string;
  readonly unit: Unit;
  /** Which direction is better; `none` if neither is. */
  readonly better: "higher" | "lower" | "none";
}

const METRIC = "metrics.";

interface Known {
  readonly title: string;
  readonly unit: Unit;
  readonly better: Measure["better"];
}

/** The metrics that the server derives, in the order in which they are shown. */
const KNOWN: ReadonlyMap<string, Known> = new Map<string, Known>([
  ["duration", { title: "Duration", unit: "seconds", better: "lower" }],
  ["llm_duration", { title: "LLM duration", unit: "seconds", better: "lower" }],
  ["time_to_first_token", { title: "First token", unit: "seconds", better: "lower" }],
  ["total_tokens", { title: "Tokens", unit: "count", better: "lower" }],
  ["prompt_tokens", { title: "Prompt tokens", unit: "count", better: "lower" }],
  ["completion_tokens", { title: "Completion tokens", unit: "count", better: "lower" }],
  ["estimated_cost", { title: "Cost", unit: "dollars", better: "lower" }],
  ["llm_calls", { title: "LLM calls", unit: "count", better: "none" }],
  ["tool_calls", { title: "Tool calls", unit: "count", better: "none" }],
  ["errors", { title: "Call errors", unit: "count", better: "lower" }],
]);

/** Metrics that say nothing in a comparison, or repeat others. */
const HIDDEN: ReadonlySet<string> = new Set(["start", "end", "llm_errors", "tool_errors", "cached"]);

export function measureOf(name: string): Measure {
  if (!name.startsWith(METRIC)) return { name, title: name, unit: "score", better: "higher" };
  const metric = name.slice(METRIC.length);
  const known = KNOWN.get(metric);
  return known === undefined ? { name, title: metric, unit: "count", better: "none" } : { name, ...known };
}

/** The measures of scores and metrics: scores by name, then known metrics, then others by name. */
export function measuresOf(scores: Iterable<string>, metrics: Iterable<string>): readonly Measure[] {
  const order = [...KNOWN.keys()];
  const rank = (metric: string): number => (KNOWN.has(metric) ? order.indexOf(metric) : order.length);
  const shown = [...new Set(metrics)].filter((metric) => !HIDDEN.has(metric));
  shown.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return [...[...new Set(scores)].sort().map(measureOf), ...shown.map((metric) => measureOf(METRIC + metric))];
}

function countText(value: number): string {
  return Number.isInteger(value) || Math.abs(value) >= 100 ? shortCount(Math.round(value)) : value.toFixed(1);
}

/** Writes a value of a measure. */
export function valueText({ unit }: Measure, value: number | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  switch (unit) {
    case "score":
      return scoreText(value);
    case "seconds":
      return duration(value * 1000);
    case "dollars":
      return money(value);
    case "count":
      return countText(value);
  }
}

const isZero = (text: string): boolean => !/[1-9]/.test(text);

/** Writes a difference with its sign; one that rounds to nothing has none. */
export function deltaText(measure: Measure, value: number | null | undefined): string {
  if (value === null || value === undefined) return NOTHING;
  const text = valueText(measure, Math.abs(value));
  if (isZero(text)) return text;
  return value < 0 ? `-${text}` : `+${text}`;
}

/** Writes an interval: `-0.03 to +0.06`. */
export function intervalText(measure: Measure, interval: Change["interval"]): string {
  if (interval === null) return NOTHING;
  return `${deltaText(measure, interval[0])} to ${deltaText(measure, interval[1])}`;
}

/** Below so many pairs a difference is said, but not called good or bad. */
const FEW_PAIRS = 20;

const SAME_WITHIN = 1e-9;

/** The tone of a single difference. */
export function toneOf({ better }: Measure, delta: number | null | undefined): DeltaTone {
  if (delta === null || delta === undefined || better === "none" || Math.abs(delta) <= SAME_WITHIN) return "none";
  return delta > 0 === (better === "higher") ? "good" : "bad";
}

/** Below so many changed pairs all of them may have changed in one direction by chance, as for the server. */
const CHANGED_PAIRS_MIN = 6;

/** How certain a change over all pairs is. */
export function certaintyOf({ pairs, interval, up, down }: Change): "few" | "open" | "certain" {
  if (pairs < FEW_PAIRS || interval === null) return "few";
  if (up === 0 && down === 0) return "certain";
  return up + down < CHANGED_PAIRS_MIN || (interval[0] <= 0 && interval[1] >= 0) ? "open" : "certain";
}

/** The order in which a request sorts so that regressions come first, or last. */
export function orderOf(measure: Measure, isWorstFirst: boolean): "asc" | "desc" {
  const isLowWorst = measure.better !== "lower";
  return isLowWorst === isWorstFirst ? "asc" : "desc";
}
