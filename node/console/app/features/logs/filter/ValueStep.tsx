// The last step of a condition: its value or values, with how many rows have each.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type KeyboardEvent } from "react";
import { problemOf } from "../../../lib/errors";
import { ranked, type KnownField, type KnownValue, type Scalar } from "../../../btql";
import { Button } from "../../../design/Button";
import { Combobox, type ComboOption } from "../../../design/Combobox";
import { shortCount } from "../../../lib/numbers";
import style from "./ChipEditor.module.css";
import { scalarOf, type OperatorChoice } from "./operators";
import { rowWord, type Scope } from "./scope";
import { valuesQuery, type FieldValues } from "./values";

interface ValueStepProps {
  readonly scope: Scope;
  readonly field: KnownField;
  readonly by: OperatorChoice;
  /** What a condition had before it was changed. */
  readonly start: { readonly typed: string; readonly values: readonly Scalar[] } | null;
  readonly onDone: (values: readonly Scalar[]) => void;
}

const valueId = (value: Scalar): string => JSON.stringify(value);
const TYPED = "typed";

/** A text, a moment after it came to rest. */
function useRested(text: string): string {
  const [rested, setRested] = useState(text);
  useEffect(() => {
    const timer = window.setTimeout(() => setRested(text), 150);
    return () => window.clearTimeout(timer);
  }, [text]);
  return rested;
}

/** The values of the field. What is typed is looked for on the server if not all values are listed. */
function useValues({ scope, field, by }: ValueStepProps, typed: string) {
  const isListed = by.takes !== "text" && field.type !== "object" && field.type !== "time";
  const all = useQuery({ ...valuesQuery(scope, field), enabled: isListed });
  const rested = useRested(typed);
  const isPartly = isListed && all.data?.hasMore === true && rested.trim() !== "";
  const some = useQuery({ ...valuesQuery(scope, field, rested.trim()), enabled: isPartly });
  const shown = isPartly && some.data !== undefined ? some : all;
  return { isListed, data: shown.data, error: shown.error, isReading: isListed && shown.isPending };
}

function listed(data: FieldValues | undefined, typed: string, chosen: readonly Scalar[]): readonly KnownValue[] {
  const found = ranked(data?.values ?? [], typed, ({ value }) => String(value));
  const known = new Set(found.map(({ value }) => valueId(value)));
  const absent = typed === "" ? chosen.filter((value) => !known.has(valueId(value))) : [];
  return [...absent.map((value) => ({ value, count: 0 })), ...found];
}

function optionsOf(
  values: readonly KnownValue[],
  typed: string,
  field: KnownField,
  by: OperatorChoice,
  chosen: readonly Scalar[],
): readonly ComboOption[] {
  const isMany = by.takes === "many";
  const own = scalarOf(typed, field.type);
  const isKnown = values.some(({ value }) => value === own);
  const options = values.map(({ value, count }) => ({
    id: valueId(value),
    label: value === "" ? '""' : String(value),
    detail: count === 0 ? "" : shortCount(count),
    ...(isMany ? { isChosen: chosen.includes(value) } : {}),
  }));
  if (typed === "" || isKnown) return options;
  const typedOption = { id: TYPED, label: `“${typed}”`, detail: "as typed", ...(isMany ? { isChosen: chosen.includes(own) } : {}) };
  const isOrdered = ["gt", "ge", "lt", "le"].includes(by.operator);
  return isOrdered || by.takes === "text" ? [typedOption] : [...options, typedOption];
}

export function ValueStep(props: ValueStepProps) {
  const { scope, field, by, start, onDone } = props;
  const isMany = by.takes === "many";
  const [typed, setTyped] = useState(isMany ? "" : (start?.typed ?? ""));
  const [chosen, setChosen] = useState<readonly Scalar[]>(isMany ? (start?.values ?? []) : []);
  const isUntouched = !isMany && typed === (start?.typed ?? "");
  const sought = isUntouched && by.takes !== "text" ? "" : typed;
  const { isListed, data, error, isReading } = useValues(props, sought);
  const values = listed(data, sought, chosen);
  const options = optionsOf(values, by.takes === "text" ? typed : sought, field, by, chosen);
  const own = by.takes === "text" ? typed : scalarOf(typed, field.type);
  const pick = ({ id }: ComboOption): void => {
    const value = id === TYPED ? own : values.find((one) => valueId(one.value) === id)?.value;
    if (value === undefined) return;
    if (!isMany) return onDone([value]);
    setTyped("");
    setChosen(chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value]);
  };
  const onKey = (event: KeyboardEvent<HTMLInputElement>, isOnOption: boolean): void => {
    const isHeld = event.ctrlKey || event.metaKey;
    if (event.key !== "Enter" || (isOnOption && !isHeld)) return;
    event.preventDefault();
    if (isMany && chosen.length > 0) onDone(chosen);
    else if (!isMany && typed !== "") onDone([own]);
  };
  const words = isReading ? "Reading values" : typed === "" ? "Type a value." : "";
  return (
    <>
      <Combobox
        form="inline"
        label="Value"
        placeholder={field.type === "time" ? "2026-05-04T10:00:00Z" : "Value"}
        value={typed}
        onValue={setTyped}
        options={options}
        isFirstCurrent={!isMany || sought !== ""}
        isMultiple={isMany}
        onPick={pick}
        onKey={onKey}
        whenEmpty={error === null && <p className={style["none"]}>{words}</p>}
      />
      {isListed && error !== null && (
        <p className={style["fault"]} role="alert">
          The values could not be counted. {problemOf(error, Date.now()).text}
        </p>
      )}
      {isMany && (
        <div className={style["foot"]}>
          <span className={style["hint"]}>{chosen.length === 0 ? "Choose values." : `${chosen.length} chosen`}</span>
          <Button disabled={chosen.length === 0} onClick={() => onDone(chosen)}>
            Apply
          </Button>
        </div>
      )}
      {!isMany && isListed && (data?.values.length ?? 0) > 0 && (
        <p className={style["hint"]}>Counts are of {rowWord(scope.shape, 2)} in the range.</p>
      )}
    </>
  );
}
