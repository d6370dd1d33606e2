// The field of the filter bar: what is typed is searched for, or leads to a condition.
import { useState, type KeyboardEvent, type RefObject } from "react";
import { condition, type Condition, type KnownField } from "../../../btql";
import { Combobox } from "../../../design/Combobox";
import { HEADINGS, offersOf, optionOf, type Offer } from "./offers";

export interface FreeTextProps {
  readonly input: RefObject<HTMLInputElement | null>;
  readonly fields: readonly KnownField[];
  readonly hasChips: boolean;
  readonly onCondition: (condition: Condition) => void;
  readonly onField: (field: KnownField) => void;
  /** Adds an expression that is typed. */
  readonly onExpression: (text: string) => void;
  readonly onRemoveLast: () => void;
  readonly onBack: () => void;
}

export function FreeText(props: FreeTextProps) {
  const { input, fields } = props;
  const [typed, setTyped] = useState("");
  const text = typed.trim();
  const offers = offersOf(typed, fields);
  const options = offers.map((offer, index) => {
    const isFirst = offers[index - 1]?.kind !== offer.kind;
    return optionOf(offer, text, isFirst ? HEADINGS[offer.kind] : undefined);
  });
  const take = (offer: Offer | undefined): void => {
    if (offer === undefined) return;
    setTyped("");
    switch (offer.kind) {
      case "search":
        return props.onCondition(condition([], "search", text));
      case "expression":
        return props.onExpression(text);
      case "field":
        return props.onField(offer.field);
      case "value":
        return props.onCondition(condition(offer.field.path, "eq", offer.value));
    }
  };
  const onKey = (event: KeyboardEvent<HTMLInputElement>): void => {
    const isAtStart = event.currentTarget.selectionStart === 0 && event.currentTarget.selectionEnd === 0;
    if (isAtStart && event.key === "ArrowLeft" && props.hasChips) props.onBack();
    else if (isAtStart && event.key === "Backspace" && typed === "") props.onRemoveLast();
    else if (event.key === "Escape" && event.currentTarget.getAttribute("aria-expanded") !== "true") event.currentTarget.blur();
    else return;
    event.preventDefault();
  };
  return (
    <Combobox
      form="popup"
      label="Filter"
      placeholder={props.hasChips ? "" : "Filter by a field, or search"}
      input={input}
      value={typed}
      onValue={setTyped}
      options={options}
      isFirstCurrent={text !== ""}
      onPick={({ id }) => take(offers[options.findIndex((option) => option.id === id)])}
      onKey={onKey}
    />
  );
}
