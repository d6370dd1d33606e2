// Says where a text stops being JSON, which the browser's own parser tells in other words everywhere.

export interface JsonFault {
  readonly offset: number;
  /** The line and the column, counted from 1. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

type Wanted = "value" | "value or ]" | "key" | "key or }" | ":" | ", or ]" | ", or }" | "end";

const WORDS: Readonly<Record<Wanted, string>> = {
  value: "A value is missing here.",
  "value or ]": "A value or ] is missing here.",
  key: "A key in double quotes is missing here.",
  "key or }": "A key in double quotes or } is missing here.",
  ":": "A colon is missing here.",
  ", or ]": "A comma or ] is missing here.",
  ", or }": "A comma or } is missing here.",
  end: "There is more text after the value.",
};

const SPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const SCALAR = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;

/** The length of what a pattern finds at an offset; -1 if it finds nothing. */
function length(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0].length ?? -1;
}

function placed(text: string, offset: number, message: string): JsonFault {
  const before = text.slice(0, offset);
  const start = before.lastIndexOf("\n") + 1;
  return { offset, line: before.split("\n").length, column: offset - start + 1, message };
}

/** Where in a text that starts with a quote the string goes wrong. */
function stringFault(text: string, at: number): JsonFault {
  for (let offset = at + 1; offset < text.length; offset += 1) {
    const character = text[offset] ?? "";
    if (character < " ") return placed(text, offset, "A line end or control character stands in a string. Write \\n instead.");
    if (character !== "\\") continue;
    if (!/^\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/.test(text.slice(offset, offset + 6))) {
      return placed(text, offset, "This escape is not known. Write \\\\ for a backslash.");
    }
    offset += 1;
  }
  return placed(text, at, "This string has no end.");
}

function messageAt(text: string, at: number, wanted: Wanted): JsonFault {
  const character = text[at];
  if (character === '"' && wanted !== ":" && !wanted.startsWith(",") && wanted !== "end") return stringFault(text, at);
  if (character === "'") return placed(text, at, "Strings stand in double quotes.");
  if (character === undefined) return placed(text, at, "The text ends too early.");
  if ((character === "}" && wanted === "key") || (character === "]" && wanted === "value")) {
    return placed(text, at, "There is a comma too many before this.");
  }
  return placed(text, at, WORDS[wanted]);
}

/** Whether a text has a value where one is expected: how long it is, and what it opens. */
function valueAt(text: string, at: number): { readonly length: number; readonly opens: "{" | "[" | null } | null {
  const character = text[at];
  if (character === "{" || character === "[") return { length: 1, opens: character };
  const found = length(character === '"' ? STRING : SCALAR, text, at);
  return found < 0 ? null : { length: found, opens: null };
}

interface State {
  at: number;
  wanted: Wanted;
  readonly open: ("{" | "[")[];
}

/** What may follow a complete value. */
function after(state: State): Wanted {
  const top = state.open.at(-1);
  if (top === undefined) return "end";
  return top === "{" ? ", or }" : ", or ]";
}

/** Takes one token. Returns false if there is none of the wanted kind. */
function take(text: string, state: State): boolean {
  const character = text[state.at] ?? "";
  const move = (by: number, wanted: Wanted): true => {
    state.at += by;
    state.wanted = wanted;
    return true;
  };
  const closes = (state.wanted.endsWith("]") && character === "]") || (state.wanted.endsWith("}") && character === "}");
  if (closes) {
    state.open.pop();
    return move(1, after(state));
  }
  switch (state.wanted) {
    case "value":
    case "value or ]": {
      const value = valueAt(text, state.at);
      if (value === null) return false;
      if (value.opens !== null) state.open.push(value.opens);
      if (value.opens === null) return move(value.length, after(state));
      return move(1, value.opens === "{" ? "key or }" : "value or ]");
    }
    case "key":
    case "key or }": {
      const size = character === '"' ? length(STRING, text, state.at) : -1;
      return size < 0 ? false : move(size, ":");
    }
    case ":":
      return character === ":" && move(1, "value");
    case ", or ]":
      return character === "," && move(1, "value");
    case ", or }":
      return character === "," && move(1, "key");
    case "end":
      return false;
  }
}

/** What is wrong with a text as JSON; null if nothing is. */
export function jsonFault(text: string): JsonFault | null {
  const state: State = { at: 0, wanted: "value", open: [] };
  for (;;) {
    state.at += Math.max(0, length(SPACE, text, state.at));
    if (state.wanted === "end" && state.at === text.length) return null;
    if (!take(text, state)) return messageAt(text, state.at, state.wanted);
  }
}
