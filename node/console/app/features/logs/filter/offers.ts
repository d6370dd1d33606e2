// What a text in the filter bar can mean: a search, a condition, a value, or the name of a field.
import { literal, path as pathText, ranked, tokens, type KnownField, type Scalar } from "../../../btql";
import type { ComboOption } from "../../../design/ComboboxLogic";
import { shortCount } from "../../../lib/numbers";
import { fieldKey, mergedFields } from "./fields";

export type Offer =
  | { readonly kind: "search" }
  | { readonly kind: "expression" }
  | { readonly kind: "field"; readonly field: KnownField }
  | { readonly kind: "value"; readonly field: KnownField; readonly value: Scalar; readonly count: number };

const MAX_FIELDS = 8;
const MAX_VALUES = 6;

const COMPARING = /^(?:=|!=|<>|<=?|>=?|in|is|like|ilike|match|includes|contains|between|not)$/i;

/** Whether a text looks like an expression: a name, and then an operator. */
export function isExpression(text: string): boolean {
  const [first, ...rest] = tokens(text);
  const isName = first !== undefined && ["name", "quotedName"].includes(first.kind);
  const isCall = isName && text.charAt(first.end) === "(";
  return isCall || (isName && rest.some(({ start, end }) => COMPARING.test(text.slice(start, end))) && rest.length > 1);
}

/** What a typed text can mean, the most likely first. */
export function offersOf(typed: string, fields: readonly KnownField[]): readonly Offer[] {
  const text = typed.trim();
  const all = mergedFields(fields);
  const shown = ranked(all, text, (field) => pathText(field.path)).slice(0, MAX_FIELDS);
  const ofFields = shown.map((field): Offer => ({ kind: "field", field }));
  if (text === "") return ofFields;
  const values = all.flatMap((field) =>
    field.type === "string" || field.type === "boolean"
      ? ranked(field.values, text, ({ value }) => String(value)).map((one) => ({ field, ...one }))
      : [],
  );
  const ofValues = values
    .toSorted((one, other) => other.count - one.count)
    .slice(0, MAX_VALUES)
    .map((one): Offer => ({ kind: "value", ...one }));
  const first: readonly Offer[] = isExpression(text) ? [{ kind: "expression" }, { kind: "search" }] : [{ kind: "search" }];
  return [...first, ...ofValues, ...ofFields];
}

export function optionOf(offer: Offer, typed: string, heading: string | undefined): ComboOption {
  const head = heading === undefined ? {} : { heading };
  switch (offer.kind) {
    case "search":
      return { id: "search", label: `Search for “${typed}”`, detail: "whole words", ...head };
    case "expression":
      return { id: "expression", label: typed, detail: "as a condition", ...head };
    case "field":
      return { id: fieldKey(offer.field.path), label: pathText(offer.field.path), detail: offer.field.type, ...head };
    case "value": {
      const text = `${pathText(offer.field.path)} = ${literal(offer.value)}`;
      return { id: text, label: text, detail: `about ${shortCount(offer.count)}`, ...head };
    }
  }
}

export const HEADINGS: Readonly<Partial<Record<Offer["kind"], string>>> = { field: "Fields", value: "Values" };
