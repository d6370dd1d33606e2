// What is said of a chart to those who do not see it.
import type { ChartLine } from "../../design/LineChart";
import { preferences } from "../../lib/preferences";
import { clock, day } from "../../lib/time";
import type { Unit } from "./cards";
import { largestOf, totalOf, unitText, type Drawn } from "./series";

interface About {
  readonly unit: Unit;
  readonly isSum: boolean;
}

const momentWords = (moment: number): string => {
  const { zone } = preferences.value;
  const date = new Date(moment);
  return `${day(date, zone)} ${clock(date, zone).replace(/(?::00)?\.000$/, "")}`;
};

/** A chart in a sentence or two: how many lines, their sum where values add up, and the largest value. */
export function summaryOf(title: string, { xs }: Drawn, lines: readonly ChartLine[], { unit, isSum }: About): string {
  const largest = largestOf(xs, lines);
  const names = lines.map(({ name }) => name).join(", ");
  const shape = `${title}: ${lines.length} ${lines.length === 1 ? "line" : "lines"} of ${xs.length} points: ${names}.`;
  const total = isSum && lines.length === 1 ? ` In all ${unitText(totalOf(lines), unit)}.` : "";
  const most = largest === null ? "" : ` The largest value is ${unitText(largest.value, unit)} at ${momentWords(largest.x)}${lines.length === 1 ? "" : ` of ${largest.line}`}.`;
  return shape + total + most;
}
