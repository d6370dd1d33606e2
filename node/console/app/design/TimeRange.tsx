// Shows the range of time. The panel that chooses another is loaded when it is first opened, or before.
import { useEffect, useMemo, useRef } from "react";
import { useCommands, useLatest } from "../lib/commands";
import { whenIdle } from "../lib/first";
import { preferences } from "../lib/preferences";
import { rangeWords } from "../lib/range";
import { Icon } from "./Icon";
import { withKeys } from "./Kbd";
import { lazily, readyAll } from "./Lazily";
import { useOpener } from "./PopoverLogic";
import style from "./TimeRange.module.css";

const Panel = lazily(async () => (await import("./TimeRangePanel")).TimeRangePanel);

export interface TimeRangeProps {
  /** A range in the form of `lib/range`. */
  readonly value: string;
  readonly onChange: (range: string) => void;
}

export function TimeRange({ value, onChange }: TimeRangeProps) {
  const button = useRef<HTMLButtonElement>(null);
  const panel = useOpener();
  const open = useLatest(panel.open);
  const commands = useMemo(
    () => [{ id: "range.open", title: "Choose the range of time", group: "Filter", keys: "t", run: () => open() }],
    [open],
  );
  useCommands(commands);
  useEffect(() => whenIdle(() => readyAll([Panel])), []);
  const { zone } = preferences.value;
  const words = rangeWords(value, zone);
  const choose = (range: string): void => {
    panel.close();
    if (range !== value) onChange(range);
  };
  return (
    <>
      <button
        {...panel.opener}
        ref={button}
        type="button"
        className={style["button"]}
        aria-label={`Range of time: ${words}`}
        title={withKeys("Range of time", "t")}
      >
        <Icon name="clock" />
        <span className={style["words"]}>{words}</span>
        <Icon name="down" />
      </button>
      {panel.isOpen && <Panel {...{ value, zone }} anchor={button} onChange={choose} onClose={panel.close} />}
    </>
  );
}
