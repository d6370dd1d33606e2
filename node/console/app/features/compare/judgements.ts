// What is said of a change: its interval, and whether it is certain, in words and in a colour.
import type { Change } from "../../api/comparison";
import type { MeasureStatistics, RowsToSettle, Verdict } from "../../api/statistics";
import type { DeltaTone } from "../../design/Delta";
import { exactCount } from "../../lib/numbers";
import { certaintyOf, deltaText, intervalText, toneOf, type Measure } from "./measures";

export interface Judgement {
  readonly interval: Change["interval"];
  readonly tone: DeltaTone;
  /** The verdict in plain words; empty while it is not known. */
  readonly word: string;
  /** What would settle the change; empty if it is settled, or if nothing is known. */
  readonly hint: string;
  readonly statistics: MeasureStatistics | null;
}

/** Statistics of a measure: null if there are none, and `reading` until it is known. */
export type Found = MeasureStatistics | "reading" | null;

/** Judges a change of a measure of an experiment against the base. */
export type Judge = (experiment: string, measure: Measure, change: Change | null) => Judgement;

/** Names a direction: as good or bad where the measure has a better direction, else as it is. */
function wordOf(measure: Measure, verdict: Verdict): string {
  if (verdict === "undecided") return verdict;
  const tone = toneOf(measure, verdict === "up" ? 1 : -1);
  if (tone === "none") return verdict === "up" ? "higher" : "lower";
  return tone === "good" ? "better" : "worse";
}

export function hintOf(rows: RowsToSettle): string {
  switch (rows) {
    case null:
      return "";
    case "too_many":
      return "more than 100,000 more rows would settle it";
    case "not_by_more_rows":
      return "more rows would not settle it";
    default:
      return `about ${exactCount(rows)} more ${rows === 1 ? "row" : "rows"} would settle it`;
  }
}

/** The verdict over the pairs at hand, which stands in where the server has no statistics. */
function ownWord(measure: Measure, change: Change): string {
  const certainty = certaintyOf(change);
  if (certainty === "few") return "few rows";
  if (certainty === "open" || change.delta === null) return "undecided";
  if (change.up === 0 && change.down === 0) return "unchanged";
  return wordOf(measure, change.delta > 0 ? "up" : "down");
}

/** Judges by the statistics, and by the pairs alone without them. A change that is not certain has no tone. */
export function judged(measure: Measure, change: Change | null, found: Found): Judgement {
  const statistics = found === "reading" ? null : found;
  const nothing = { interval: change?.interval ?? null, tone: "none", word: "", hint: "", statistics } as const;
  if (change === null || found === "reading") return nothing;
  const judgedChange = found?.change ?? null;
  if (judgedChange === null) {
    const tone = certaintyOf(change) === "certain" ? toneOf(measure, change.delta) : "none";
    return { ...nothing, tone, word: ownWord(measure, change) };
  }
  const { interval, verdict, rowsToSettle } = judgedChange;
  const direction = verdict === "up" ? 1 : verdict === "down" ? -1 : 0;
  return { interval, tone: toneOf(measure, direction), word: wordOf(measure, verdict), hint: hintOf(rowsToSettle), statistics };
}

/** A change in a sentence, for tooltips. */
export function changeTitle(measure: Measure, change: Change, { interval, word, hint }: Judgement): string {
  const within = interval === null ? "" : `, 95 % interval ${intervalText(measure, interval)}`;
  const said = [word, hint].filter((part) => part !== "").join(", ");
  return `${deltaText(measure, change.delta)} over ${change.pairs} pairs${within}${said === "" ? "" : `: ${said}`}.`;
}
