// What a click in an explanation filters by.
import { called, literal, path as pathText } from "../../../btql/write";
import type { RowShape, Scalar, Step } from "../../../btql";
import type { NumberField } from "./ranking";

/** Among traces, another span may fulfil the condition than the one that fulfils the rest of the filter. */
const ofRow = (condition: string, shape: RowShape, isAlone: boolean): string =>
  shape === "traces" && !isAlone ? called("any_span", condition) : condition;

/** The condition that a row has a value. */
export function valueChip(path: readonly Step[], value: Scalar, shape: RowShape, filter: string): string {
  const field = pathText(path);
  const condition = path[0] === "tags" && path.length === 1 ? `${field} INCLUDES ${literal(value)}` : `${field} = ${literal(value)}`;
  return ofRow(condition, shape, filter.trim() === "");
}

const median = (quantiles: readonly number[]): number => quantiles[Math.floor(quantiles.length / 2)] ?? 0;

/** Three digits are enough for a bound. */
const rounded = (number: number): number => Number(number.toPrecision(3));

/** The bound that most of the selection is beyond: its lower values where it has greater numbers than the rest. */
export function boundOf({ inside, outside }: NumberField): { readonly sign: ">=" | "<="; readonly bound: number } {
  const isGreater = median(inside) >= median(outside);
  const rank = Math.round((inside.length - 1) * (isGreater ? 0.3 : 0.7));
  return { sign: isGreater ? ">=" : "<=", bound: rounded(inside[rank] ?? 0) };
}

export function numberChip(field: NumberField, shape: RowShape, filter: string): string {
  const { sign, bound } = boundOf(field);
  return ofRow(`${pathText(field.path)} ${sign} ${literal(bound)}`, shape, filter.trim() === "");
}
