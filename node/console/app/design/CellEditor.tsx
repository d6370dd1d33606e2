// The editor of a cell: it opens over the cell, checks while one types, and says what is wrong at its line.
//
// `ctrl enter` takes the value over, `tab` does and goes right, `esc` does not. In a text `enter` takes it over too.
import { useId, useLayoutEffect, useRef, useState, type KeyboardEvent } from "react";
import { Button } from "./Button";
import { classes } from "./classes";
import style from "./CellEditor.module.css";

export type CellEditorKind = "text" | "json" | "tags";

/** What is wrong with a text, and where if at one place. */
export interface CellEditorFault {
  readonly message: string;
  readonly place: { readonly line: number; readonly column: number } | null;
  /** Whether the value is taken nevertheless: it can be stored, but does not fit. */
  readonly isMild: boolean;
}

/** Where to go after a value was taken over. */
export type CellEditorMove = "stay" | "down" | "right" | "left";

export interface CellEditorProps {
  /** What is edited: `input of row 12`. */
  readonly label: string;
  readonly kinds: readonly CellEditorKind[];
  /** The text to start with, for a kind. */
  readonly textOf: (kind: CellEditorKind) => string;
  readonly check: (text: string, kind: CellEditorKind) => CellEditorFault | null;
  readonly onDone: (text: string, kind: CellEditorKind, move: CellEditorMove) => void;
  readonly onCancel: () => void;
  /** Where the cell is. */
  readonly at: DOMRect;
}

const TITLES: Readonly<Record<CellEditorKind, string>> = { text: "Text", json: "JSON", tags: "Tags" };
const HINTS: Readonly<Record<CellEditorKind, string>> = {
  text: "Enter is done, Shift Enter is a new line, Esc leaves it as it was.",
  json: "Ctrl Enter is done, Esc leaves it as it was.",
  tags: "Commas between tags. Enter is done, Esc leaves them as they were.",
};
const MOST_LINE_NUMBERS = 5000;

/** Puts the editor over its cell and within the window. */
function place(box: HTMLElement, at: DOMRect): void {
  const margin = 8;
  const top = Math.max(margin, Math.min(at.top - 1, window.innerHeight - box.offsetHeight - margin));
  const left = Math.max(margin, Math.min(at.left - 1, window.innerWidth - box.offsetWidth - margin));
  box.style.top = `${top}px`;
  box.style.left = `${left}px`;
}

interface AreaProps {
  readonly label: string;
  readonly kind: CellEditorKind;
  readonly text: string;
  readonly fault: CellEditorFault | null;
  readonly faultId: string;
  readonly onText: (text: string) => void;
  readonly onKeyDown: (event: KeyboardEvent<HTMLTextAreaElement>) => void;
}

/** Line numbers beside a text of JSON; the line of a fault is marked. */
function Numbers({ text, line, top }: { readonly text: string; readonly line: number | null; readonly top: number }) {
  const count = Math.min(MOST_LINE_NUMBERS, text.split("\n").length);
  return (
    <div className={style["numbers"]} aria-hidden="true">
      <div style={{ transform: `translateY(${-top}px)` }}>
        {Array.from({ length: count }, (_, index) => (
          <div key={index} className={index + 1 === line ? style["badLine"] : undefined}>
            {index + 1}
          </div>
        ))}
      </div>
    </div>
  );
}

function Area({ label, kind, text, fault, faultId, onText, onKeyDown }: AreaProps) {
  const [top, setTop] = useState(0);
  const isCode = kind === "json";
  const lines = Math.min(18, Math.max(kind === "tags" ? 1 : isCode ? 6 : 3, text.split("\n").length));
  return (
    <div className={classes(style["area"], isCode && style["code"])}>
      {isCode && <Numbers text={text} line={fault?.place?.line ?? null} top={top} />}
      <textarea
        aria-label={label}
        aria-invalid={fault !== null && !fault.isMild}
        aria-describedby={faultId}
        rows={lines}
        wrap={isCode ? "off" : "soft"}
        spellCheck={!isCode}
        autoComplete="off"
        value={text}
        onChange={(event) => onText(event.currentTarget.value)}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={onKeyDown}
      />
    </div>
  );
}

/** Keeps the indentation of the line before. */
function newLine(event: KeyboardEvent<HTMLTextAreaElement>): void {
  const area = event.currentTarget;
  const before = area.value.slice(0, area.selectionStart);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const indent = /^\s*/.exec(line)?.[0] ?? "";
  const deeper = /[[{]\s*$/.test(line) ? "  " : "";
  event.preventDefault();
  document.execCommand("insertText", false, `\n${indent}${deeper}`);
}

function KindSwitch({ kinds, kind, onKind }: {
  readonly kinds: readonly CellEditorKind[];
  readonly kind: CellEditorKind;
  readonly onKind: (kind: CellEditorKind) => void;
}) {
  if (kinds.length < 2) return <span className={style["kind"]}>{TITLES[kind]}</span>;
  return (
    <div role="group" aria-label="Edit as" className={style["kinds"]}>
      {kinds.map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={one === kind}
          className={classes(style["kind"], one === kind && style["chosen"])}
          onClick={() => onKind(one)}
        >
          {TITLES[one]}
        </button>
      ))}
    </div>
  );
}

function useEditor({ kinds, textOf, check, onDone, onCancel }: CellEditorProps) {
  const [kind, setKind] = useState<CellEditorKind>(kinds[0] ?? "text");
  const [text, setText] = useState(() => textOf(kind));
  const [isRefused, setRefused] = useState(false);
  const start = useRef(text);
  const fault = check(text, kind);
  const done = (move: CellEditorMove): void => {
    if (text === start.current && kind === (kinds[0] ?? "text")) onCancel();
    else if (fault !== null && !fault.isMild) setRefused(true);
    else onDone(text, kind, move);
  };
  const changeKind = (next: CellEditorKind): void => {
    if (next === kind) return;
    setText(text === start.current ? textOf(next) : text);
    setKind(next);
    setRefused(false);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    const isMod = event.ctrlKey || event.metaKey;
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") onCancel();
    else if (event.key === "Tab") done(event.shiftKey ? "left" : "right");
    else if (event.key === "Enter" && (isMod || (kind !== "json" && !event.shiftKey))) done("down");
    else if (event.key === "Enter" && kind === "json") return newLine(event);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return { kind, text, setText, fault, isRefused, done, changeKind, onKeyDown };
}

export function CellEditor(props: CellEditorProps) {
  const box = useRef<HTMLDivElement>(null);
  const faultId = useId();
  const editor = useEditor(props);
  const { kind, text, fault, isRefused } = editor;
  const { at, label, kinds, onCancel } = props;
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    if (!element.matches(":popover-open")) element.showPopover();
    place(element, at);
  }, [at, kind, text]);
  useLayoutEffect(() => {
    const area = box.current?.querySelector("textarea");
    area?.focus();
    area?.setSelectionRange(kind === "json" ? 0 : area.value.length, kind === "json" ? 0 : area.value.length);
  }, [kind]);
  return (
    <div
      ref={box}
      popover="manual"
      role="dialog"
      aria-label={`Edit ${label}`}
      className={style["editor"]}
      onBlur={(event) => {
        const next = event.relatedTarget;
        if (next instanceof Node && box.current?.contains(next) !== true) editor.done("stay");
      }}
    >
      <Area
        key={kind}
        {...{ label, kind, text, fault, faultId }}
        onText={editor.setText}
        onKeyDown={editor.onKeyDown}
      />
      <p id={faultId} className={classes(style["fault"], fault?.isMild === true && style["mild"])} role="status">
        {fault?.place != null && `Line ${fault.place.line}, column ${fault.place.column}: `}
        {fault?.message}
        {fault !== null && !fault.isMild && isRefused && " Correct it, or press Esc to leave it as it was."}
      </p>
      <footer className={style["foot"]}>
        <KindSwitch kinds={kinds} kind={kind} onKind={editor.changeKind} />
        <span className={style["hint"]}>{HINTS[kind]}</span>
        <Button look="quiet" onClick={onCancel}>
          Cancel
        </Button>
        <Button onClick={() => editor.done("stay")}>Done</Button>
      </footer>
    </div>
  );
}
