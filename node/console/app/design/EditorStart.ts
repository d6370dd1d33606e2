// Starts a CodeMirror editor inside a shadow root.
import { acceptCompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { Annotation, EditorState, Prec, type Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { colours, completion, notes, setNotes, type Notes } from "./EditorParts";
import { theme } from "./EditorTheme";
import type { EditorActions, EditorProps } from "./EditorTypes";

/** Marks a change that the screen made itself. */
const fromOutside = Annotation.define<boolean>();

/** Keys of CodeMirror that mean something else in this console. */
const LEFT_OUT: ReadonlySet<string> = new Set(["Mod-Enter", "Alt-ArrowUp", "Alt-ArrowDown", "Mod-/", "Mod-[", "Mod-]"]);

export interface StartedEditor {
  setText(text: string): void;
  setNotes(notes: Notes): void;
  stop(): void;
}

/** What the editor reads whenever it needs it, so that it always has the newest. */
export type EditorSources = Pick<EditorProps, "onText" | "tokensOf" | "complete" | "keys">;

/**
 * Types over a selection. Left to itself, a browser would carry the colours of the selected text over as inline styles,
 * which the content policy refuses and reports.
 */
const overSelection = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const text = event.inputType === "insertText" ? event.data : null;
    const { from, to, empty } = view.state.selection.main;
    if (text === null || empty || event.isComposing || view.state.readOnly) return false;
    event.preventDefault();
    const insert = () =>
      view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    const isHandled = view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, insert));
    if (!isHandled) view.dispatch(insert());
    return true;
  },
});

function extensionsOf(props: EditorProps, latest: () => EditorSources): Extension {
  const own = props.keys.map(({ key }) => ({
    key,
    preventDefault: false,
    run: () => latest().keys.find((one) => one.key === key)?.run() ?? false,
  }));
  const common = [...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap];
  return [
    Prec.highest(keymap.of(own.filter(({ key }) => key !== "Escape"))),
    keymap.of(completionKeymap),
    keymap.of([{ key: "Tab", run: acceptCompletion }]),
    keymap.of(own.filter(({ key }) => key === "Escape")),
    keymap.of(common.filter((binding) => !LEFT_OUT.has(binding.key ?? ""))),
    lineNumbers(),
    highlightSpecialChars(),
    history(),
    closeBrackets(),
    overSelection,
    EditorView.lineWrapping,
    placeholder(props.placeholder),
    colours((text) => latest().tokensOf(text)),
    completion((text, at, signal) => latest().complete(text, at, signal)),
    notes,
    theme,
    EditorView.contentAttributes.of({
      tabindex: "0",
      "aria-label": props.label,
      "aria-multiline": "true",
      spellcheck: "false",
      autocapitalize: "off",
      autocorrect: "off",
    }),
    EditorView.updateListener.of((update) => {
      const isOurs = update.transactions.some((transaction) => transaction.annotation(fromOutside) === true);
      if (update.docChanged && !isOurs) latest().onText(update.state.doc.toString());
    }),
  ];
}

function actionsOf(view: EditorView): EditorActions {
  return {
    focus: () => view.focus(),
    select: (from, to) => {
      const length = view.state.doc.length;
      view.dispatch({
        selection: { anchor: Math.min(from, length), head: Math.min(to, length) },
        scrollIntoView: true,
      });
      view.focus();
    },
  };
}

/** Starts the editor in an element, which must not have a shadow root yet or one of an editor before. */
export function startEditor(host: HTMLElement, props: EditorProps, latest: () => EditorSources): StartedEditor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({ doc: props.text, extensions: extensionsOf(props, latest) }),
  });
  props.onReady(actionsOf(view));
  return {
    setText: (text) => {
      if (text === view.state.doc.toString()) return;
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: text },
        selection: { anchor: text.length },
        annotations: fromOutside.of(true),
      });
    },
    setNotes: (given) => view.dispatch({ effects: setNotes.of(given) }),
    stop: () => {
      props.onReady(null);
      view.destroy();
    },
  };
}
