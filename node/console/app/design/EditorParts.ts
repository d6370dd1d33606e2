// What the editor is made of besides its text: colours of tokens, marks with their squiggles, hints, and completion.
import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { RangeSetBuilder, StateEffect, StateField, type Extension } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  hoverTooltip,
  ViewPlugin,
  WidgetType,
  type DecorationSet,
  type ViewUpdate,
} from "@codemirror/view";
import type { EditorHint, EditorMark, EditorOption, EditorProps, EditorToken, EditorTokenKind } from "./EditorTypes";

/** Longer texts are shown without colours, so that typing stays fast. */
const COLOURED_LENGTH = 100_000;

const decorationOf = (kind: EditorTokenKind): Decoration => Decoration.mark({ class: `tok-${kind}` });

const DECORATIONS: Readonly<Record<EditorTokenKind, Decoration>> = {
  keyword: decorationOf("keyword"),
  function: decorationOf("function"),
  name: decorationOf("name"),
  string: decorationOf("string"),
  number: decorationOf("number"),
  comment: decorationOf("comment"),
  operator: decorationOf("operator"),
  unknown: decorationOf("unknown"),
};

/** Colours the tokens that are in view. */
export function colours(tokensOf: EditorProps["tokensOf"]): Extension {
  const drawn = (view: EditorView, tokens: readonly EditorToken[]): DecorationSet => {
    const builder = new RangeSetBuilder<Decoration>();
    const { from: first, to: last } = view.viewport;
    for (const { from, to, kind } of tokens) {
      if (to > first && from < last && to > from) builder.add(from, to, DECORATIONS[kind]);
    }
    return builder.finish();
  };
  const read = (view: EditorView): readonly EditorToken[] =>
    view.state.doc.length > COLOURED_LENGTH ? [] : tokensOf(view.state.doc.toString());
  class Colours {
    tokens: readonly EditorToken[];
    decorations: DecorationSet;
    constructor(view: EditorView) {
      this.tokens = read(view);
      this.decorations = drawn(view, this.tokens);
    }
    update(update: ViewUpdate): void {
      if (update.docChanged) this.tokens = read(update.view);
      if (update.docChanged || update.viewportChanged) this.decorations = drawn(update.view, this.tokens);
    }
  }
  return ViewPlugin.fromClass(Colours, { decorations: (plugin) => plugin.decorations });
}

class Hint extends WidgetType {
  constructor(readonly text: string) {
    super();
  }
  override eq(other: Hint): boolean {
    return other.text === this.text;
  }
  override toDOM(): HTMLElement {
    const element = document.createElement("span");
    element.className = "hint";
    element.textContent = this.text;
    return element;
  }
}

export interface Notes {
  readonly marks: readonly EditorMark[];
  readonly hints: readonly EditorHint[];
}

export const setNotes = StateEffect.define<Notes>();

interface Noted extends Notes {
  readonly decorations: DecorationSet;
}

function notedOf({ marks, hints }: Notes, length: number): Noted {
  const squiggles = marks.map(({ from, to, severity }) => {
    const start = Math.min(from, length);
    const end = Math.min(Math.max(to, start), length);
    // A mark without extent stands on the character before it, or where there is none is a point of its own.
    return start < end
      ? Decoration.mark({ class: `mark-${severity}` }).range(start, end)
      : Decoration.widget({ widget: new Hint(""), side: 1 }).range(start);
  });
  const words = hints
    .filter(({ at }) => at <= length)
    .map(({ at, text }) => Decoration.widget({ widget: new Hint(text), side: 1 }).range(at));
  return { marks, hints, decorations: Decoration.set([...squiggles, ...words], true) };
}

const noted = StateField.define<Noted>({
  create: () => ({ marks: [], hints: [], decorations: Decoration.none }),
  update: (value, transaction) => {
    const given = transaction.effects.find((effect) => effect.is(setNotes));
    if (given?.is(setNotes) === true) return notedOf(given.value, transaction.newDoc.length);
    if (!transaction.docChanged) return value;
    const marks = value.marks.map((mark) => ({
      ...mark,
      from: transaction.changes.mapPos(mark.from, 1),
      to: transaction.changes.mapPos(mark.to, -1),
    }));
    return { ...value, marks, decorations: value.decorations.map(transaction.changes) };
  },
  provide: (field) => EditorView.decorations.from(field, (value) => value.decorations),
});

const messages = hoverTooltip((view, at) => {
  const found = view.state.field(noted).marks.filter(({ from, to }) => from <= at && at <= to);
  const [first] = found;
  if (first === undefined) return null;
  return {
    pos: first.from,
    above: true,
    create: () => {
      const dom = document.createElement("div");
      dom.className = "message";
      dom.textContent = found.map((mark) => mark.message).join("\n");
      return { dom };
    },
  };
});

/** Squiggles, their messages, and hints. */
export const notes: Extension = [noted, messages];

const optionOf = ({ label, apply, detail, info, kind, boost = 0 }: EditorOption): Completion => ({
  label,
  type: kind,
  boost,
  ...(apply === undefined ? {} : { apply }),
  ...(detail === undefined ? {} : { detail }),
  ...(info === undefined ? {} : { info }),
});

/** Completion from what the screen knows. A read that the next key makes useless is given up. */
export function completion(complete: EditorProps["complete"]): Extension {
  const source = async (context: CompletionContext): Promise<CompletionResult | null> => {
    const before = context.matchBefore(/[\w$.:'"`-]$/);
    if (!context.explicit && before === null) return null;
    const reading = new AbortController();
    context.addEventListener("abort", () => reading.abort(), { onDocChange: true });
    const found = await complete(context.state.doc.toString(), context.pos, reading.signal).catch(() => null);
    if (found === null || found.options.length === 0 || context.aborted) return null;
    return {
      from: found.from,
      ...(found.to === undefined ? {} : { to: found.to }),
      options: found.options.map(optionOf),
      validFor: /^[\w$-]*$/,
    };
  };
  return autocompletion({ override: [source], icons: false, activateOnTyping: true, maxRenderedOptions: 60 });
}
