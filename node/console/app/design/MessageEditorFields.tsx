// The fields of an editor of messages: a text with its variables marked, and a value as JSON that is checked.
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { parseJson, printJson } from "../lib/json";
import { jsonFault } from "./CellEditorJson";
import { classes } from "./classes";
import style from "./MessageEditor.module.css";
import { templatePieces, type TemplateFormat } from "./MessageEditorLogic";

interface TemplateFieldProps {
  readonly label: string;
  readonly text: string;
  readonly format: TemplateFormat;
  readonly isReadOnly: boolean;
  readonly placeholder?: string;
  readonly onText: (text: string) => void;
  readonly onKeyDown?: (event: KeyboardEvent<HTMLTextAreaElement>) => void;
}

/** A text that grows with what is typed. The marks lie behind the letters, which are those of the field itself. */
export function TemplateField({ label, text, format, isReadOnly, placeholder, onText, onKeyDown }: TemplateFieldProps) {
  return (
    <div className={style["template"]}>
      <div className={style["behind"]} aria-hidden="true">
        {templatePieces(text, format).map((piece, index) => (piece.isTag ? <mark key={index}>{piece.text}</mark> : piece.text))}
        {"\n"}
      </div>
      <textarea
        aria-label={label}
        rows={1}
        value={text}
        readOnly={isReadOnly}
        placeholder={placeholder}
        spellCheck={false}
        autoComplete="off"
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
    </div>
  );
}

interface JsonFieldProps<Value> {
  readonly label: string;
  readonly value: unknown;
  /** Reads the parsed text; a text that is returned says what is wrong with the value. */
  readonly read: (value: unknown) => { readonly value: Value } | string;
  readonly onValue: (value: Value) => void;
  readonly isReadOnly?: boolean;
  /** What an empty text stands for; without it an empty text is a fault. */
  readonly whenEmpty?: { readonly value: Value };
  readonly isLabelShown?: boolean;
  readonly rows?: number;
}

/** What is wrong with a text of JSON, or its value. */
function taken<Value>(text: string, { read, whenEmpty }: JsonFieldProps<Value>): { readonly value: Value } | string {
  if (text.trim() === "" && whenEmpty !== undefined) return whenEmpty;
  const fault = jsonFault(text);
  if (fault !== null) return `Line ${fault.line}, column ${fault.column}: ${fault.message}`;
  return read(parseJson(text));
}

/** A value as JSON. What is typed is taken over as soon as it can be; a fault is said and nothing is changed. */
export function JsonField<Value>(props: JsonFieldProps<Value>) {
  const { label, value, onValue, isReadOnly = false, whenEmpty, isLabelShown = true, rows = 3 } = props;
  const id = useId();
  const printed = whenEmpty !== undefined && printJson(whenEmpty.value) === printJson(value) ? "" : printJson(value);
  const given = useRef(printed);
  const [text, setText] = useState(printed);
  const [fault, setFault] = useState("");
  useEffect(() => {
    if (printed === given.current) return;
    given.current = printed;
    setText(printed);
    setFault("");
  }, [printed]);
  const change = (next: string): void => {
    setText(next);
    const result = taken(next, props);
    setFault(typeof result === "string" ? result : "");
    if (typeof result === "string") return;
    given.current = whenEmpty !== undefined && printJson(whenEmpty.value) === printJson(result.value) ? "" : printJson(result.value);
    onValue(result.value);
  };
  return (
    <div className={style["json"]}>
      <label htmlFor={id} className={classes(!isLabelShown && "only-spoken")}>
        {label}
      </label>
      <textarea
        id={id}
        rows={Math.max(rows, Math.min(24, text.split("\n").length))}
        wrap="off"
        value={text}
        readOnly={isReadOnly}
        placeholder={whenEmpty === undefined ? undefined : printJson(whenEmpty.value, 0)}
        spellCheck={false}
        autoComplete="off"
        aria-invalid={fault !== ""}
        aria-describedby={`${id}-fault`}
        onInput={(event) => change(event.currentTarget.value)}
      />
      <p id={`${id}-fault`} className={style["fault"]} role="status">
        {fault}
      </p>
    </div>
  );
}
