// The address of the section about usage: the range of its spending, and the order of its projects.
import { choiceParameter } from "../../lib/address";
import { pageAddress } from "../../lib/pages";
import { readRange } from "../../lib/range";

export const USAGE_SORTS = ["bytes", "rows", "name"] as const;
export const MEASURES = ["cost", "tokens"] as const;

export type UsageSort = (typeof USAGE_SORTS)[number];
export type Measure = (typeof MEASURES)[number];

export interface UsageState {
  readonly organization: string;
  /** A range of time, in the form of `lib/range`. */
  readonly range: string;
  readonly sort: UsageSort;
  readonly measure: Measure;
}

const RANGE = "30d";

export function readUsageState(organization: string, query: URLSearchParams): UsageState {
  const range = query.get("t") ?? RANGE;
  return {
    organization,
    range: readRange(range) === null ? RANGE : range,
    sort: choiceParameter(query, "sort", USAGE_SORTS, "bytes"),
    measure: choiceParameter(query, "y", MEASURES, "cost"),
  };
}

export const writeUsageState = ({ organization, range, sort, measure }: UsageState): string =>
  pageAddress("settings", organization, "", ["usage"], [
    ["t", range, RANGE],
    ["sort", sort, "bytes"],
    ["y", measure, "cost"],
  ]);
