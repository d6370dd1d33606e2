// The whole filter as one line of text, with colours, completion, and the place of what is wrong.
import { useId, useLayoutEffect, useRef, useState, type KeyboardEvent, type RefObject } from "react";
import type { KnownField } from "../../../btql";
import { completions, type Completion } from "../../../btql/completion";
import { Combobox, type ComboOption } from "../../../design/Combobox";
import { classes } from "../../../design/classes";
import style from "./ExpressionLine.module.css";
import { indexOfByte } from "./fault";
import { mergedFields } from "./fields";
import { piecesOf } from "./pieces";
import type { Fault } from "./queries";

export interface ExpressionLineProps {
  readonly input: RefObject<HTMLInputElement | null>;
  readonly value: string;
  readonly fields: readonly KnownField[];
  /** What is wrong with the text; null while nobody has looked. */
  readonly fault: Fault | null;
  readonly onValue: (value: string) => void;
  readonly onApply: () => void;
  readonly onCancel: () => void;
}

function Colours({ text, wrongAt, left }: { readonly text: string; readonly wrongAt: number | null; readonly left: number }) {
  return (
    <div className={style["colours"]} aria-hidden="true">
      <span className={style["line"]} style={{ transform: `translateX(${-left}px)` }}>
        {piecesOf(text, wrongAt).map((piece, index) => (
          <span key={index} className={classes(style[piece.kind], piece.isWrong && style["mark"])}>
            {piece.text}
          </span>
        ))}
      </span>
    </div>
  );
}

const idOf = (option: Completion): string => `${option.kind} ${option.label}`;

const comboOption = (option: Completion): ComboOption => ({ id: idOf(option), label: option.label, detail: option.detail });

export function ExpressionLine({ input, value, fields, fault, onValue, onApply, onCancel }: ExpressionLineProps) {
  const faultId = useId();
  const [caret, setCaret] = useState(value.length);
  const [left, setLeft] = useState(0);
  const next = useRef<number | null>(null);
  const found = completions(value, Math.min(caret, value.length), { fields: mergedFields(fields) });
  const wrongAt = fault?.offset === null || fault === null ? null : indexOfByte(value, fault.offset);
  useLayoutEffect(() => {
    if (next.current === null) return;
    input.current?.setSelectionRange(next.current, next.current);
    next.current = null;
  });
  const pick = ({ id }: ComboOption): void => {
    const option = found?.options.find((one) => idOf(one) === id);
    if (found === null || option === undefined) return;
    next.current = found.from + option.text.length;
    setCaret(next.current);
    onValue(value.slice(0, found.from) + option.text + value.slice(found.to));
  };
  const onKey = (event: KeyboardEvent<HTMLInputElement>, isOnOption: boolean): void => {
    const isOpen = event.currentTarget.getAttribute("aria-expanded") === "true";
    if (event.key === "Enter" && !isOnOption) onApply();
    else if (event.key === "Escape" && !isOpen) onCancel();
    else return;
    event.preventDefault();
  };
  return (
    <div className={style["expression"]}>
      <Combobox
        form="popup"
        label="Filter expression"
        placeholder="metadata.model = 'gpt-4o' AND error IS NOT NULL"
        input={input}
        value={value}
        onValue={(typed, at) => {
          setCaret(at);
          onValue(typed);
        }}
        options={found?.options.map(comboOption) ?? []}
        onPick={pick}
        onKey={onKey}
        onCaret={setCaret}
        onScroll={setLeft}
        behind={<Colours text={value} wrongAt={wrongAt} left={left} />}
        staysOpen
        isInvalid={fault !== null}
        describedBy={fault === null ? undefined : faultId}
      />
      {fault !== null && (
        <p id={faultId} className={style["fault"]} role="alert">
          {fault.column !== null && <b>Column {fault.column}: </b>}
          {fault.message}
        </p>
      )}
    </div>
  );
}
