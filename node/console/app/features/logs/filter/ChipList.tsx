// The chips of a filter. Arrows move between them, and they are one stop of the tab key.
import { useRef, useState, type KeyboardEvent } from "react";
import {
  nameOf,
  SPAN_WORDS,
  textOfChips,
  withoutChip,
  wordsOf,
  type Chip,
  type Condition,
  type KnownField,
} from "../../../btql";
import { classes } from "../../../design/classes";
import { Icon } from "../../../design/Icon";
import { useOpener } from "../../../design/PopoverLogic";
import style from "./ChipList.module.css";
import { isEditable } from "./editable";
import { ChipPopover } from "./later";
import type { Scope } from "./scope";

export interface ChipListProps {
  readonly scope: Scope;
  readonly chips: readonly Chip[];
  readonly fields: readonly KnownField[];
  readonly isReading: boolean;
  readonly onChange: (index: number, condition: Condition) => void;
  readonly onRemove: (index: number) => void;
  /** Changes a chip as text, which its own editor has no words for. */
  readonly onText: () => void;
  /** Moves the focus behind the last chip. */
  readonly onLeave: () => void;
}

interface ItemProps extends Omit<ChipListProps, "onLeave" | "isReading"> {
  readonly chip: Chip;
  readonly index: number;
  readonly isStop: boolean;
  readonly onStop: () => void;
}

/** The words of a chip. The spaces are part of its text: its name has them, too. */
function Words({ chip }: { readonly chip: Chip }) {
  if (chip.condition === null) return <code className={style["expression"]}>{chip.text}</code>;
  const { field, operator, values } = wordsOf(chip.condition);
  const { span } = chip.condition;
  const [, before = "", last = field] = /^(metadata\.|span_attributes\.|metrics\.|scores\.)(.+)$/.exec(field) ?? [];
  return (
    <>
      {span !== "same" && <span className={style["span"]}>{SPAN_WORDS[span]}</span>}{" "}
      <span className={style["field"]}>
        <span className={style["before"]}>{before}</span>
        {last}
      </span>{" "}
      {operator !== "" && <span className={style["operator"]}>{operator}</span>}{" "}
      {values.length > 0 && <span className={style["value"]}>{values.join(", ")}</span>}
    </>
  );
}

function Item(props: ItemProps) {
  const { chip, index, chips, scope, fields, isStop, onStop } = props;
  const button = useRef<HTMLButtonElement>(null);
  const editor = useOpener();
  const name = nameOf(chip);
  const isText = chip.condition === null || !isEditable(chip.condition);
  const opener = isText ? { onClick: props.onText } : editor.opener;
  return (
    <li className={classes(style["chip"], isText && style["text"])}>
      <button
        {...opener}
        ref={button}
        type="button"
        data-chip={index}
        className={style["open"]}
        tabIndex={isStop ? 0 : -1}
        aria-label={name}
        title={chip.text}
        onFocus={onStop}
      >
        <Words chip={chip} />
      </button>
      <button
        type="button"
        className={style["remove"]}
        tabIndex={-1}
        aria-label={`Remove ${name}`}
        title="Remove (Backspace)"
        onClick={() => props.onRemove(index)}
      >
        <Icon name="close" />
      </button>
      {editor.isOpen && (
        <ChipPopover
          label={`Change ${name}`}
          anchor={button}
          onClose={editor.close}
          scope={{ ...scope, filter: textOfChips(withoutChip(chips, index)) }}
          fields={fields}
          before={chip.condition}
          onDone={(condition) => {
            editor.close();
            props.onChange(index, condition);
          }}
        />
      )}
    </li>
  );
}

export function ChipList(props: ChipListProps) {
  const { chips, onLeave, onRemove, isReading } = props;
  const list = useRef<HTMLUListElement>(null);
  const [stop, setStop] = useState(0);
  const focus = (index: number): void => {
    if (index >= chips.length || chips.length === 0) onLeave();
    else list.current?.querySelector<HTMLElement>(`[data-chip="${Math.max(0, index)}"]`)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const at = event.target instanceof HTMLElement ? event.target.dataset["chip"] : undefined;
    if (at === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const index = Number(at);
    const targets: Readonly<Record<string, number>> = {
      ArrowLeft: index - 1,
      ArrowRight: index + 1,
      Home: 0,
      End: chips.length,
    };
    const target = targets[event.key];
    if (target !== undefined) focus(target);
    else if (event.key === "Backspace" || event.key === "Delete") {
      onRemove(index);
      focus(chips.length === 1 ? 1 : Math.max(0, index - 1));
    } else return;
    event.preventDefault();
  };
  if (chips.length === 0) return null;
  return (
    <ul
      ref={list}
      role="list"
      aria-label="Conditions"
      aria-busy={isReading}
      className={classes(style["list"], isReading && style["old"])}
      onKeyDown={onKeyDown}
    >
      {chips.map((chip, index) => (
        <Item
          {...props}
          key={`${index} ${chip.text}`}
          chip={chip}
          index={index}
          isStop={index === Math.min(stop, chips.length - 1)}
          onStop={() => setStop(index)}
        />
      ))}
    </ul>
  );
}
