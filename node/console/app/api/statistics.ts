// Statistics of an experiment: whether its changes against a base are certain, and which inputs have trials that disagree.
import { call } from "./client";
import { count, isRecord, list, numberOrNull, record, text } from "./narrow";

export type Verdict = "up" | "down" | "undecided";

/** How many further rows would settle a change; null if that is not known. */
export type RowsToSettle = number | "too_many" | "not_by_more_rows" | null;

/** A change of a mean over the inputs that both experiments have. */
export interface JudgedChange {
  /** The interval of the change with a confidence of 95 %; null if the rows are too few for one. */
  readonly interval: readonly [number, number] | null;
  readonly verdict: Verdict;
  readonly rowsToSettle: RowsToSettle;
}

/** An input whose trials have different values of a score. */
export interface Disagreement {
  readonly key: string;
  readonly trials: number;
  readonly low: number;
  readonly high: number;
}

export interface MeasureStatistics {
  /** Null without a base, and if no input has a value in both experiments. */
  readonly change: JudgedChange | null;
  /** How many inputs of both experiments have a value in only one of them. */
  readonly incomplete: number;
  readonly disagreeing: number;
  /** Some of them, with the largest range first. */
  readonly disagreements: readonly Disagreement[];
}

/** Statistics by the name of a score, or by `metrics.` and the name of a metric. */
export type ExperimentStatistics = ReadonlyMap<string, MeasureStatistics>;

function readRowsToSettle(value: unknown): RowsToSettle {
  if (value === "too_many" || value === "not_by_more_rows") return value;
  return isRecord(value) ? numberOrNull(value["about"]) : null;
}

function readChange(value: unknown): JudgedChange | null {
  if (!isRecord(value)) return null;
  const [low, high] = (Array.isArray(value["interval"]) ? value["interval"] : []).map(numberOrNull);
  const verdict = value["verdict"];
  return {
    interval: low == null || high == null ? null : [low, high],
    verdict: verdict === "up" || verdict === "down" ? verdict : "undecided",
    rowsToSettle: readRowsToSettle(value["rows_to_settle"]),
  };
}

function readDisagreement(value: unknown): Disagreement {
  const one = record(value, "disagreement");
  return { key: text(one, "key"), trials: count(one, "trials"), low: count(one, "low"), high: count(one, "high") };
}

/** Reads statistics; null stands for an experiment with too many rows. */
export function statisticsIn(value: unknown): ExperimentStatistics | null {
  if (value === null) return null;
  const all = record(value, "statistics");
  const measures = [...list(all, "scores"), ...list(all, "metrics")].map((one) => {
    const fields = record(one, "statistics");
    const read = {
      change: readChange(fields["change"]),
      incomplete: count(fields, "incomplete"),
      disagreeing: count(fields, "disagreeing"),
      disagreements: list(fields, "disagreements").map(readDisagreement),
    };
    return [text(fields, "name"), read] as const;
  });
  return new Map(measures);
}

/** Reads the statistics of an experiment against a base, or against none. */
export async function readStatistics(organization: string, id: string, base: string | null, signal: AbortSignal) {
  const compared = base === null ? "" : `&comparison_experiment_id=${base}`;
  const path = `/v1/experiment/${id}/summarize?summarize_scores=true${compared}`;
  return statisticsIn(record(await call("GET", path, { organization, signal }), "summary")["statistics"]);
}
