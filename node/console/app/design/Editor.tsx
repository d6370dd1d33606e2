// An editor of code: a text area over the same text in colours. Undo, input methods and screen readers are the browser's.
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import { EditorLayer, rectAt } from "./EditorLayer";
import { linesOf } from "./EditorLines";
import { EditorList, optionId } from "./EditorList";
import { useCompletion, type Completion, type CompletionActions } from "./EditorCompletion";
import { broken, deleted, keyOf, typed, type Edit } from "./EditorTyping";
import type { EditorActions, EditorOption, EditorProps } from "./EditorTypes";
import style from "./Editor.module.css";

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const OF_LIST: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

/** Makes a change as if it were typed, so that the browser can take it back. */
function make(area: HTMLTextAreaElement, { from, to, insert, select }: Edit): void {
  area.focus();
  area.setSelectionRange(from, to);
  const isDone = insert === "" ? document.execCommand("delete") : document.execCommand("insertText", false, insert);
  if (!isDone) {
    area.setRangeText(insert, from, to, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
  area.setSelectionRange(...select);
}

function accept(area: HTMLTextAreaElement, { from, to }: Completion, option: EditorOption): void {
  const insert = option.apply ?? option.label;
  make(area, { from, to: to ?? area.selectionStart, insert, select: [from + insert.length, from + insert.length] });
}

/** The edit that a key means, beyond what the browser does. */
function editOf(area: HTMLTextAreaElement, event: KeyboardEvent): Edit | null {
  const { value, selectionStart: from, selectionEnd: to } = area;
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return null;
  if (event.key === "Enter" && !event.shiftKey) return broken(value, from, to);
  if (event.key === "Backspace" && from === to) return deleted(value, from);
  return event.key.length === 1 ? typed(value, from, to, event.key) : null;
}

interface Keyboard {
  readonly area: HTMLTextAreaElement;
  readonly props: EditorProps;
  readonly completion: Completion;
  readonly actions: CompletionActions;
}

/** Handles a key of the list. Returns whether it was one. */
function pressedInList(event: KeyboardEvent, { area, completion, actions }: Keyboard): boolean {
  const option = completion.options[completion.chosen];
  if (option === undefined || event.ctrlKey || event.metaKey || event.altKey) return false;
  const by = OF_LIST[event.key];
  if (by !== undefined) actions.choose(by);
  else if (event.key === "Escape") actions.close();
  else if (event.key === "Enter" || event.key === "Tab") {
    accept(area, completion, option);
    actions.close();
  } else return false;
  return true;
}

function press(event: KeyboardEvent, keyboard: Keyboard): void {
  const { area, props, actions } = keyboard;
  // Keys that are typed are no shortcuts of the page.
  if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  const own = keyOf(props.keys, event, IS_MAC);
  if (own !== undefined && event.key !== "Escape" && own.run()) return event.preventDefault();
  if (pressedInList(event, keyboard)) return event.preventDefault();
  if (event.key === " " && event.ctrlKey) {
    actions.open(area.value, area.selectionStart);
    return event.preventDefault();
  }
  if (own !== undefined && event.key === "Escape" && own.run()) return event.preventDefault();
  const edit = editOf(area, event);
  if (edit === null) return;
  event.preventDefault();
  make(area, edit);
}

/** What is said about the place under the pointer, for the tooltip of the text area. */
function messageAt(event: MouseEvent): string {
  const under = document.elementsFromPoint(event.clientX, event.clientY);
  for (const element of under) {
    const message = element instanceof HTMLElement ? element.dataset["message"] : undefined;
    if (message !== undefined) return message;
  }
  return "";
}

function actionsOf(area: HTMLTextAreaElement, layer: () => HTMLElement | null): EditorActions {
  return {
    focus: () => area.focus(),
    select: (from, to) => {
      area.focus({ preventScroll: true });
      area.setSelectionRange(from, to);
      const row = layer()?.children.item(area.value.slice(0, from).split("\n").length - 1);
      row?.scrollIntoView({ block: "nearest" });
    },
  };
}

/** The lines of a text. Marks and hints of an earlier text are left out until the new ones are there. */
function useLines(text: string, { tokensOf, marks, hints }: EditorProps) {
  const noted = useRef({ marks, hints, text });
  if (noted.current.marks !== marks || noted.current.hints !== hints) noted.current = { marks, hints, text };
  const isNew = noted.current.text === text;
  return useMemo(
    () => linesOf(text, { tokens: tokensOf(text), marks: isNew ? marks : [], hints: isNew ? hints : [] }),
    [text, tokensOf, marks, hints, isNew],
  );
}

interface AreaProps {
  readonly area: { current: HTMLTextAreaElement | null };
  readonly props: EditorProps;
  readonly completion: Completion;
  readonly actions: CompletionActions;
  /** The id of the list, or null if there is none. */
  readonly list: string | null;
  readonly onText: (text: string) => void;
}

function TextArea({ area, props, completion, actions, list, onText }: AreaProps) {
  return (
    <textarea
      ref={area}
      className={style["area"]}
      aria-label={props.label}
      aria-autocomplete="list"
      aria-haspopup="listbox"
      aria-controls={list ?? undefined}
      aria-activedescendant={list === null ? undefined : optionId(list, completion.chosen)}
      defaultValue={props.text}
      placeholder={props.placeholder}
      spellCheck={false}
      autoCapitalize="off"
      autoCorrect="off"
      autoComplete="off"
      onInput={({ currentTarget }) => {
        onText(currentTarget.value);
        actions.follow(currentTarget.value, currentTarget.selectionStart);
      }}
      onKeyDown={(event) => press(event.nativeEvent ?? event, { area: event.currentTarget, props, completion, actions })}
      onSelect={({ currentTarget }) => actions.moved(currentTarget.value, currentTarget.selectionStart)}
      onBlur={actions.close}
      onMouseMove={(event) => {
        event.currentTarget.title = messageAt(event.nativeEvent ?? event);
      }}
    />
  );
}

export function Editor(props: EditorProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const id = useId();
  const [text, setText] = useState(props.text);
  const [completion, actions] = useCompletion(() => latest.current.complete);
  const lines = useLines(text, props);
  useLayoutEffect(() => {
    if (area.current !== null && area.current.value !== props.text) area.current.value = props.text;
    setText(props.text);
  }, [props.text]);
  useEffect(() => {
    if (area.current === null) return undefined;
    latest.current.onReady(actionsOf(area.current, () => layer.current));
    return () => latest.current.onReady(null);
  }, []);
  const isOpen = completion.options.length > 0;
  const at = isOpen && layer.current !== null ? rectAt(layer.current, text, completion.from) : null;
  const list = at === null ? null : id;
  const onText = (written: string): void => {
    setText(written);
    latest.current.onText(written);
  };
  const onAccept = (option: EditorOption): void => {
    if (area.current !== null) accept(area.current, completion, option);
    actions.close();
  };
  return (
    <div className={style["editor"]} onScroll={actions.close}>
      <div className={style["stack"]}>
        <div ref={layer} className={style["layer"]} aria-hidden="true">
          <EditorLayer lines={lines} />
        </div>
        <TextArea {...{ area, props, completion, actions, list, onText }} />
      </div>
      {at !== null && (
        <EditorList id={id} options={completion.options} chosen={completion.chosen} at={at} onAccept={onAccept} />
      )}
    </div>
  );
}
