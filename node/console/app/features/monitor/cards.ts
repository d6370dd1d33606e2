// The cards of a monitor: what each of them measures, and how their arrangement is written in an address.
import { called, ident, item, literal, written, type Expression, type Item } from "../../api/query";
import type { MonitorShape } from "./url";

export const UNITS = ["number", "seconds", "dollars", "percent"] as const;

export type Unit = (typeof UNITS)[number];

export const UNIT_NAMES: Readonly<Record<Unit, string>> = {
  number: "Number",
  seconds: "Seconds",
  dollars: "Dollars",
  percent: "Share, shown in percent",
};

export const FIXED = ["traces", "errors", "duration", "ttft", "tokens", "cost", "models", "failures"] as const;

export type FixedId = (typeof FIXED)[number];

/** A card of an arrangement. */
export type Card =
  | { readonly kind: "fixed"; readonly id: FixedId }
  | { readonly kind: "score"; readonly score: string }
  | { readonly kind: "own"; readonly name: string; readonly measure: string; readonly unit: Unit };

/** The key of a card among others; two own charts of one name are told apart by their measure. */
export function cardKey(card: Card): string {
  switch (card.kind) {
    case "fixed":
      return card.id;
    case "score":
      return `score:${card.score}`;
    case "own":
      return `own:${JSON.stringify([card.name, card.measure, card.unit])}`;
  }
}

const fixed = (id: FixedId): Card => ({ kind: "fixed", id });

/** All cards that there are without own ones: those of every project, and one for each score. */
export const allCards = (scores: readonly string[]): readonly Card[] => [
  ...FIXED.map(fixed),
  ...scores.map((score): Card => ({ kind: "score", score })),
];

const encoded = (card: Card): unknown => {
  switch (card.kind) {
    case "fixed":
      return card.id;
    case "score":
      return [card.score];
    case "own":
      return [card.name, card.measure, card.unit];
  }
};

function decoded(value: unknown): Card | null {
  const id = FIXED.find((one) => one === value);
  if (id !== undefined) return fixed(id);
  if (!Array.isArray(value)) return null;
  const [name, measure, unit]: readonly unknown[] = value;
  if (typeof name !== "string") return null;
  if (value.length === 1) return { kind: "score", score: name };
  const known = UNITS.find((one) => one === unit);
  return typeof measure !== "string" || known === undefined ? null : { kind: "own", name, measure, unit: known };
}

/** Writes an arrangement; null is all cards that there are, in their usual order. */
export const writeCards = (cards: readonly Card[] | null): string =>
  cards === null ? "" : JSON.stringify(cards.map(encoded));

/** Reads an arrangement. Cards that this version does not know are left out; null is all that there are. */
export function readCards(text: string): readonly Card[] | null {
  if (text === "") return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(value)) return null;
  const known = new Map<string, Card>();
  for (const card of value.map(decoded)) if (card !== null) known.set(cardKey(card), card);
  return [...known.values()];
}

/** The cards with one of them moved to another place. */
export function movedCard(cards: readonly Card[], from: number, to: number): readonly Card[] {
  const card = cards[from];
  const place = Math.min(Math.max(to, 0), cards.length - 1);
  return card === undefined || place === from ? cards : cards.toSpliced(from, 1).toSpliced(place, 0, card);
}

const FIXED_TITLES: Readonly<Record<FixedId, string>> = {
  traces: "Traces",
  errors: "Errors",
  duration: "Duration",
  ttft: "Time to first token",
  tokens: "Tokens",
  cost: "Cost",
  models: "Top models",
  failures: "Top errors",
};

export function titleOf(card: Card, shape: MonitorShape): string {
  switch (card.kind) {
    case "fixed":
      return card.id === "traces" && shape === "spans" ? "Spans" : FIXED_TITLES[card.id];
    case "score":
      return card.score;
    case "own":
      return card.name;
  }
}

export function unitOfCard(card: Card): Unit {
  if (card.kind === "own") return card.unit;
  if (card.kind === "score") return "number";
  if (card.id === "duration" || card.id === "ttft") return "seconds";
  return card.id === "cost" ? "dollars" : "number";
}

/** One line of a card before it is grouped. */
export interface Measure {
  readonly name: string;
  readonly expr: Expression;
}

const metric = (name: string): Expression => ident("metrics", name);
const percentiles = (of: Expression): readonly Measure[] =>
  [50, 95, 99].map((percent) => ({ name: `p${percent}`, expr: called("percentile", of, literal(percent / 100)) }));
const rows = called("count", literal(1));

function fixedMeasures(id: FixedId, shape: MonitorShape): readonly Measure[] {
  switch (id) {
    case "traces":
      return [{ name: shape, expr: rows }];
    case "errors": {
      const failed = shape === "traces" ? called("sum", ident("span_type_info", "has_error")) : called("count", ident("error"));
      return [{ name: `${shape} with errors`, expr: failed }];
    }
    case "duration":
      return percentiles(metric("duration"));
    case "ttft":
      return percentiles(metric("time_to_first_token"));
    case "tokens":
      return [
        { name: "all", expr: called("sum", metric("total_tokens")) },
        { name: "prompt", expr: called("sum", metric("prompt_tokens")) },
        { name: "completion", expr: called("sum", metric("completion_tokens")) },
      ];
    case "cost":
      return [{ name: "cost", expr: called("sum", called("estimated_cost")) }];
    case "models":
    case "failures":
      return [{ name: "spans", expr: rows }];
  }
}

/** The lines of a card. Of several, a grouped card shows one, which is chosen on it. */
export function measuresOf(card: Card, shape: MonitorShape): readonly Measure[] {
  switch (card.kind) {
    case "fixed":
      return fixedMeasures(card.id, shape);
    case "score":
      return [{ name: "mean", expr: called("avg", ident("scores", card.score)) }];
    case "own":
      return [{ name: card.name, expr: written(card.measure) }];
  }
}

/** Whether values of buckets add up to the value of the range, so that a bucket without rows is 0. */
export const isSum = (card: Card): boolean =>
  card.kind === "fixed" && card.id !== "duration" && card.id !== "ttft";

/** What the colour of a card's only line says. */
export const toneOf = (card: Card): "accent" | "bad" | undefined => {
  if (card.kind !== "fixed") return undefined;
  return card.id === "traces" ? "accent" : card.id === "errors" ? "bad" : undefined;
};

/** Whether a card lists values instead of drawing lines over time. */
export const isList = (card: Card): boolean => card.kind === "fixed" && (card.id === "models" || card.id === "failures");

export const measureAlias = (index: number): string => `y${index}`;

/** The output columns of a card's measures. */
export const measureItems = (card: Card, shape: MonitorShape): readonly Item[] =>
  measuresOf(card, shape).map(({ expr }, index) => item(measureAlias(index), expr));

/** The names of a card's measures. */
export const measureNames = (card: Card, shape: MonitorShape): readonly string[] => measuresOf(card, shape).map(({ name }) => name);
