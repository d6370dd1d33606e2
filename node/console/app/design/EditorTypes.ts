// What an editor of code is told, and what the screen around it can ask it to do.

/** What a part of the text is, which decides its colour. */
export type EditorTokenKind =
  | "keyword"
  | "function"
  | "name"
  | "string"
  | "number"
  | "comment"
  | "operator"
  | "unknown";

/** A part of the text, from one offset up to another. */
export interface EditorToken {
  readonly from: number;
  readonly to: number;
  readonly kind: EditorTokenKind;
}

/** A place in the text that something is said about. */
export interface EditorMark {
  readonly from: number;
  readonly to: number;
  readonly severity: "error" | "warning";
  readonly message: string;
}

/** Words shown at the end of the line of a place, which are not part of the text. */
export interface EditorHint {
  readonly at: number;
  readonly text: string;
}

export interface EditorOption {
  /** What is typed, and what the list shows. */
  readonly label: string;
  /** What is written instead of the label. */
  readonly apply?: string;
  /** A short word on the right of the list. */
  readonly detail?: string;
  /** A sentence about the option. */
  readonly info?: string;
  readonly kind: EditorTokenKind;
  /** Options with a higher number come first; 0 by default. */
  readonly boost?: number;
}

export interface EditorCompletion {
  /** Where the text starts that an option replaces. */
  readonly from: number;
  /** Where it ends; absent for the cursor. */
  readonly to?: number;
  readonly options: readonly EditorOption[];
}

export interface EditorKey {
  /** The modifiers and the key, such as `Mod-Enter` and `Alt-ArrowUp`. `Mod` is the command key on a Mac, else control. */
  readonly key: string;
  /** Returns whether the key is used up. */
  readonly run: () => boolean;
}

/** What the screen can ask an editor to do. */
export interface EditorActions {
  focus(): void;
  /** Selects a part of the text and brings it into view. */
  select(from: number, to: number): void;
}

export interface EditorProps {
  /** The accessible name. */
  readonly label: string;
  readonly text: string;
  readonly placeholder: string;
  readonly onText: (text: string) => void;
  /** Splits the text into coloured parts, in order and without overlaps. */
  readonly tokensOf: (text: string) => readonly EditorToken[];
  readonly marks: readonly EditorMark[];
  readonly hints: readonly EditorHint[];
  /** Returns what can be written at an offset; null for nothing. */
  readonly complete: (text: string, at: number, signal: AbortSignal) => Promise<EditorCompletion | null>;
  readonly keys: readonly EditorKey[];
  readonly onReady: (actions: EditorActions | null) => void;
}
