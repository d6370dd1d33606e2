// Where a point of a card leads: the logs of its bucket and its line.
import { called, conjunction, literal, path as pathText } from "../../btql/write";
import { rangeBetween } from "../../lib/range";
import type { Card } from "./cards";
import { lineNames, OTHER, type Drawn, type Groups, type GroupValue } from "./series";
import type { MonitorShape } from "./url";

export interface Target {
  readonly range: string;
  readonly filter: string;
  readonly shape: MonitorShape;
}

interface Shown {
  readonly shape: MonitorShape;
  readonly filter: string;
  readonly group: string;
  readonly groups: Groups | null;
}

const inParentheses = (group: string): string => (/^[\w.`]+$/.test(group) ? group : `(${group})`);

function groupCondition(group: string, groups: Groups, line: string): string {
  const path = inParentheses(group);
  if (line === OTHER && groups.hasOther) {
    return conjunction([`${path} IS NOT NULL`, ...groups.values.map((value) => `${path} != ${literal(value)}`)]);
  }
  const value = groups.values[lineNames(groups).indexOf(line)];
  return value === undefined ? `${path} IS NOT NULL` : `${path} = ${literal(value)}`;
}

/** A condition of a trace that need not hold on the span that fulfils the others. */
const ofTrace = (condition: string, { shape }: Shown, isRoot: boolean): string => {
  if (shape === "spans" || condition === "") return condition;
  return called("any_span", isRoot ? conjunction(["is_root", condition]) : condition);
};

/** What a card counts besides the filter. */
function cardCondition(card: Card): string {
  switch (card.kind) {
    case "fixed":
      return card.id === "errors" ? "error IS NOT NULL" : "";
    case "score":
      return `${pathText(["scores", card.score])} IS NOT NULL`;
    case "own":
      return "";
  }
}

/** The logs from one moment to another, of a line or of all; without moments those of the whole range. */
export function targetOf(card: Card, shown: Shown, range: string, line: string | null): Target {
  const { shape, filter, group, groups } = shown;
  const ofGroup = groups === null || line === null ? "" : ofTrace(groupCondition(group, groups, line), shown, true);
  return { shape, range, filter: conjunction([filter, ofTrace(cardCondition(card), shown, false), ofGroup]) };
}

/** The range of the buckets from one moment to another, as far as they lie in what is drawn. */
export function bucketRange({ xs, bucketMs, extent }: Drawn, from: number, to: number): string {
  const startOf = (moment: number): number => xs.findLast((x) => x <= moment) ?? xs[0] ?? moment;
  const start = Math.max(startOf(from), extent.from);
  return rangeBetween(Math.floor(start), Math.ceil(Math.max(start + 1, Math.min(startOf(to) + bucketMs, extent.to))));
}

/** The logs of a value of a list, such as those of a model. */
export function listTarget(shown: Shown, range: string, value: unknown, path: string): Target {
  const isScalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  const condition = isScalar ? `${path} = ${literal(value satisfies GroupValue)}` : `${path} IS NOT NULL`;
  return { shape: shown.shape, range, filter: conjunction([shown.filter, ofTrace(condition, shown, false)]) };
}

