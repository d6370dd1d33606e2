// The panel that chooses a range of time: one of the usual ones, one that is typed, or two moments.
import { useMemo, useState, type FormEvent, type RefObject } from "react";
import type { Zone } from "../lib/preferences";
import { boundsOf, inputOfMoment, momentOfInput, PRESETS, rangeBetween, rangeWords, zoneAt } from "../lib/range";
import { understoodRange } from "../lib/rangeWords";
import { Button } from "./Button";
import { classes } from "./classes";
import { Popover } from "./Popover";
import type { TimeRangeProps } from "./TimeRange";
import style from "./TimeRangePanel.module.css";

interface PartProps extends TimeRangeProps {
  readonly zone: Zone;
}

function Typed({ onChange, zone }: PartProps) {
  const [text, setText] = useState("");
  const [isRefused, setRefused] = useState(false);
  const found = understoodRange(text, Date.now(), zone);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (found === null) setRefused(true);
    else onChange(found);
  };
  return (
    <form className={style["typed"]} onSubmit={submit}>
      <label>
        <span className="only-spoken">Range in words</span>
        <input
          data-first
          className={style["input"]}
          placeholder="3 days, yesterday, 10:00 to 12:00"
          autoComplete="off"
          spellCheck={false}
          value={text}
          aria-invalid={isRefused || undefined}
          aria-describedby="range-understood"
          onInput={(event) => {
            setRefused(false);
            setText(event.currentTarget.value);
          }}
        />
      </label>
      <p id="range-understood" className={classes(style["hint"], isRefused && style["fault"])} role="status">
        {isRefused && "This is no range of time. Try “2 hours” or “2026-05-04 to 2026-05-06”."}
        {!isRefused && text.trim() !== "" && found !== null && rangeWords(found, zone)}
      </p>
    </form>
  );
}

function Presets({ value, onChange, zone }: PartProps) {
  return (
    <div className={style["presets"]} role="group" aria-label="Usual ranges">
      {PRESETS.map((preset) => (
        <button
          key={preset}
          type="button"
          className={classes(style["preset"], preset === value && style["chosen"])}
          aria-pressed={preset === value}
          title={rangeWords(preset, zone)}
          onClick={() => onChange(preset)}
        >
          <span aria-hidden="true">{preset === "all" ? "All" : preset}</span>
          <span className="only-spoken">{rangeWords(preset, zone)}</span>
        </button>
      ))}
    </div>
  );
}

const momentInput = (iso: string | null, otherwise: number, zone: Zone): string =>
  inputOfMoment(iso === null ? otherwise : Date.parse(iso), zone).slice(0, 19);

function Between({ value, onChange, zone }: PartProps) {
  const start = useMemo(() => {
    const present = Math.floor(Date.now() / 60_000) * 60_000;
    const bounds = boundsOf(value, present);
    return [momentInput(bounds.from, present - 3_600_000, zone), momentInput(bounds.to, present, zone)] as const;
  }, [value, zone]);
  const [first, setFirst] = useState(start[0]);
  const [last, setLast] = useState(start[1]);
  const [fault, setFault] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const from = momentOfInput(first, zone);
    const to = momentOfInput(last, zone);
    if (from === null || to === null) setFault("Enter both moments.");
    else if (from >= to) setFault("The start has to be before the end.");
    else onChange(rangeBetween(from, to));
  };
  const field = (label: string, text: string, set: (text: string) => void) => (
    <label className={style["moment"]}>
      <span>{label}</span>
      <input
        type="datetime-local"
        step="1"
        className={style["input"]}
        value={text}
        onInput={(event) => {
          setFault("");
          set(event.currentTarget.value);
        }}
      />
    </label>
  );
  return (
    <form className={style["between"]} onSubmit={submit} aria-label="Range between two moments" noValidate>
      {field("From", first, setFirst)}
      {field("To", last, setLast)}
      <p className={classes(style["hint"], fault !== "" && style["fault"])} role="status">
        {fault === "" ? `Times are in ${zoneAt(Date.now(), zone)}.` : fault}
      </p>
      <Button type="submit">Apply</Button>
    </form>
  );
}

export interface TimeRangePanelProps extends PartProps {
  readonly anchor: RefObject<HTMLElement | null>;
  readonly onClose: () => void;
}

export function TimeRangePanel({ anchor, onClose, ...part }: TimeRangePanelProps) {
  return (
    <Popover label="Range of time" anchor={anchor} onClose={onClose}>
      <div className={style["panel"]}>
        <Typed {...part} />
        <Presets {...part} />
        <Between {...part} />
      </div>
    </Popover>
  );
}
