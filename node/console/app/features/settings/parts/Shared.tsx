// Parts that members, groups and roles have in common.
import { useState, type ReactNode } from "react";
import type { Reading } from "../../../lib/problem";
import { askToSignIn } from "../../../api/gate";
import { Icon } from "../../../design/Icon";
import { Loaded } from "../../../design/Loaded";
import { Skeleton } from "../../../design/Skeleton";
import { Button } from "../../../design/Button";
import style from "../settings.module.css";

export const FILTER_ID = "people-filter";

interface NameFilterProps {
  /** What is listed, such as "members". */
  readonly what: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
}

export function NameFilter({ what, value, onValue }: NameFilterProps) {
  return (
    <label className={style["filter"]}>
      <Icon name="search" />
      <span className="only-spoken">Filter the {what} by name</span>
      <input
        id={FILTER_ID}
        type="search"
        placeholder="Filter by name"
        autoComplete="off"
        value={value}
        onChange={(event) => onValue(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
    </label>
  );
}

interface ReadProps<Data> {
  readonly reading: Reading<Data>;
  /** The widths of the bars of each line; by default those of a filter and a list. */
  readonly bars?: readonly (readonly number[])[];
  readonly children: (data: Data) => ReactNode;
}

const ROW = [22, 30, 18, 10];
const LIST = [[38], ROW, ROW, ROW, ROW, ROW];

/** A list that is being read, with bars until it is there. */
export function Read<Data>({ reading, bars = LIST, children }: ReadProps<Data>) {
  return (
    <Loaded
      reading={reading}
      skeleton={<Skeleton lines={bars} />}
      onSignIn={() => void askToSignIn().then(reading.again)}
    >
      {children}
    </Loaded>
  );
}

interface Choice {
  readonly id: string;
  readonly name: string;
}

interface AdderProps {
  /** What is added, such as "Person". */
  readonly label: string;
  readonly choices: readonly Choice[];
  /** Adds one and returns what went wrong, or null. */
  readonly onAdd: (id: string) => Promise<string | null>;
}

/** A choice of what is not there yet, with the button that adds it. */
export function Adder({ label, choices, onAdd }: AdderProps) {
  const [chosen, setChosen] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const isThere = choices.some(({ id }) => id === chosen);
  const add = async (): Promise<void> => {
    if (!isThere) return setFault("Choose one first.");
    const failure = await onAdd(chosen);
    setFault(failure);
    if (failure === null) setChosen("");
  };
  return (
    <>
      <div className={style["add"]}>
        <select
          aria-label={label}
          value={isThere ? chosen : ""}
          onChange={(event) => {
            setChosen(event.currentTarget.value);
            setFault(null);
          }}
        >
          <option value="">{choices.length === 0 ? "Nothing is left to add" : label}</option>
          {choices.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
        <Button aria-label={`Add: ${label}`} onClick={() => void add()}>
          Add
        </Button>
      </div>
      <p className={style["fault"]} role="alert">
        {fault}
      </p>
    </>
  );
}

interface ChecksProps {
  readonly legend: string;
  readonly choices: readonly Choice[];
  readonly chosen: ReadonlySet<string>;
  readonly onToggle: (id: string) => void;
  readonly isDisabled?: boolean;
}

/** Some of several, as check boxes. */
export function Checks({ legend, choices, chosen, onToggle, isDisabled = false }: ChecksProps) {
  return (
    <fieldset className={style["checks"]} disabled={isDisabled}>
      <legend>{legend}</legend>
      {choices.map(({ id, name }) => (
        <label key={id}>
          <input type="checkbox" checked={chosen.has(id)} onChange={() => onToggle(id)} />
          <span>{name}</span>
        </label>
      ))}
    </fieldset>
  );
}
