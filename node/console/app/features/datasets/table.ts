// Reads CSV and text with tabs as RFC 4180 has it, in parts as they come, with the line at which each record starts.

export interface TableRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

export interface Table {
  /** Takes the next part of the text, and gives the records that are complete. */
  push(text: string): readonly TableRecord[];
  /** Gives the last record, if the text does not end with a line end. */
  end(): readonly TableRecord[];
  /** The line at which quotes were opened that have not been closed; null if there are none. */
  openQuote(): number | null;
}

type Mode = "start" | "plain" | "quoted" | "closing";

interface State {
  mode: Mode;
  cell: string;
  cells: string[];
  line: number;
  start: number;
  quoteLine: number;
  /** Whether the last character was a carriage return outside of quotes, which a line feed may follow. */
  isAfterReturn: boolean;
  isFirst: boolean;
  /** Whether the record has anything, so that empty lines are passed over. */
  hasAny: boolean;
}

function endRecord(state: State, records: TableRecord[]): void {
  if (state.hasAny) records.push({ line: state.start, cells: [...state.cells, state.cell] });
  state.cells = [];
  state.cell = "";
  state.mode = "start";
  state.hasAny = false;
}

function endCell(state: State): void {
  state.cells.push(state.cell);
  state.cell = "";
  state.mode = "start";
  state.hasAny = true;
}

/** Reads within quotes from an index on; returns where the quotes end or the text does. */
function quoted(state: State, text: string, from: number): number {
  const close = text.indexOf('"', from);
  const end = close < 0 ? text.length : close;
  const part = text.slice(from, end);
  for (let at = part.search(/[\r\n]/); at >= 0 && at < part.length; at += 1) {
    const code = part[at];
    if (code === "\n" && part[at - 1] !== "\r") state.line += 1;
    else if (code === "\r") state.line += 1;
  }
  if (part.startsWith("\n") && state.cell.endsWith("\r")) state.line -= 1;
  state.cell += part;
  if (close < 0) return end;
  state.mode = "closing";
  return close + 1;
}

/** Reads a character that means something outside of quotes; returns whether it did. */
function structural(state: State, character: string, delimiter: string, records: TableRecord[]): boolean {
  const isPair = character === "\n" && state.isAfterReturn;
  state.isAfterReturn = character === "\r";
  if (isPair) {
    state.start = state.line;
    return true;
  }
  if (character === delimiter) endCell(state);
  else if (character === "\n" || character === "\r") {
    endRecord(state, records);
    state.line += 1;
    state.start = state.line;
  } else return false;
  return true;
}

function step(state: State, text: string, at: number, delimiter: string, plain: RegExp, records: TableRecord[]): number {
  if (state.mode === "quoted") return quoted(state, text, at);
  const character = text[at] ?? "";
  if (state.mode === "closing" && character === '"') {
    state.cell += '"';
    state.mode = "quoted";
    return at + 1;
  }
  if (structural(state, character, delimiter, records)) return at + 1;
  state.hasAny = true;
  if (character === '"' && state.mode === "start") {
    state.mode = "quoted";
    state.quoteLine = state.line;
    return at + 1;
  }
  plain.lastIndex = at;
  const length = Math.max(1, plain.exec(text)?.[0].length ?? 1);
  state.cell += text.slice(at, at + length);
  state.mode = "plain";
  return at + length;
}

/** A reader of a table whose cells a character divides. A mark of the byte order at the start is passed over. */
export function createTable(delimiter: string): Table {
  const state: State = {
    mode: "start",
    cell: "",
    cells: [],
    line: 1,
    start: 1,
    quoteLine: 1,
    isAfterReturn: false,
    isFirst: true,
    hasAny: false,
  };
  const plain = new RegExp(`[^\\r\\n"${delimiter === "\t" ? "\\t" : delimiter}]*`, "y");
  return {
    push: (text) => {
      const records: TableRecord[] = [];
      let at = state.isFirst && text.startsWith("\ufeff") ? 1 : 0;
      if (text !== "") state.isFirst = false;
      while (at < text.length) at = step(state, text, at, delimiter, plain, records);
      return records;
    },
    end: () => {
      const records: TableRecord[] = [];
      endRecord(state, records);
      return records;
    },
    openQuote: () => (state.mode === "quoted" ? state.quoteLine : null),
  };
}

/** The character that divides the cells of a text: the one that its first line has most of. */
export function delimiterOf(text: string): "," | ";" | "\t" {
  const first = /^[^\r\n]*/.exec(text)?.[0] ?? "";
  const bare = first.replace(/"[^"]*"/g, "");
  const counts = ([",", ";", "\t"] as const).map((delimiter) => ({ delimiter, count: bare.split(delimiter).length }));
  return counts.reduce((most, one) => (one.count > most.count ? one : most)).delimiter;
}
