// Reads the records of a file, in parts as they come: CSV, text with tabs, JSON lines, and JSON.
import { isRecord, type Fields } from "../../api/narrow";
import { jsonFault } from "../../design/CellEditorJson";
import { createTable, delimiterOf, type TableRecord } from "./table";

export const FORMATS = ["csv", "tsv", "jsonl", "json"] as const;

export type Format = (typeof FORMATS)[number];

/** A record of a file, or what is wrong with a line of it. */
export type FileRecord =
  | { readonly line: number; readonly fields: Fields }
  | { readonly line: number; readonly fault: string };

/** Reads a file part by part. */
export interface Reader {
  push(text: string): readonly FileRecord[];
  end(): readonly FileRecord[];
}

/** The format of a file, by its name and the start of its text. */
export function formatOf(name: string, start: string): Format {
  const ending = /\.(\w+)$/.exec(name.toLowerCase())?.[1] ?? "";
  if (ending === "jsonl" || ending === "ndjson") return "jsonl";
  const text = start.replace(/^\ufeff/, "").trimStart();
  if (text.startsWith("[")) return "json";
  if (text.startsWith("{")) {
    const first = /^[^\r\n]*/.exec(text)?.[0] ?? "";
    return jsonFault(first) === null ? "jsonl" : "json";
  }
  if (ending === "tsv" || ending === "tab") return "tsv";
  return delimiterOf(text) === "\t" ? "tsv" : "csv";
}

function recordOf(value: unknown, line: number): FileRecord {
  return isRecord(value) ? { line, fields: value } : { line, fault: "This is not a JSON object." };
}

function parsedRecord(text: string, line: number): FileRecord {
  try {
    return recordOf(JSON.parse(text), line);
  } catch {
    const fault = jsonFault(text);
    const words = fault === null ? "This is not JSON." : `${fault.message} Column ${fault.column}.`;
    return { line: line + (fault === null ? 0 : fault.line - 1), fault: words };
  }
}

/** Names of columns: those of the head, without doubles and gaps. */
function namesOf(cells: readonly string[]): readonly string[] {
  const seen = new Map<string, number>();
  return cells.map((cell, index) => {
    const name = cell.trim() === "" ? `column ${index + 1}` : cell.trim();
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count === 1 ? name : `${name} ${count}`;
  });
}

function tableReader(delimiter: string): Reader {
  const table = createTable(delimiter);
  let names: readonly string[] | null = null;
  const take = (records: readonly TableRecord[]): readonly FileRecord[] =>
    records.flatMap(({ line, cells }): readonly FileRecord[] => {
      if (names === null) {
        names = namesOf(cells);
        return [];
      }
      if (cells.length !== names.length) {
        const count = cells.length === 1 ? "1 cell" : `${cells.length} cells`;
        return [{ line, fault: `This line has ${count}, and the head has ${names.length}.` }];
      }
      return [{ line, fields: Object.fromEntries(names.map((name, index) => [name, cells[index] ?? ""])) }];
    });
  return {
    push: (text) => take(table.push(text)),
    end: () => {
      const open = table.openQuote();
      if (open !== null) return [{ line: open, fault: "The quotes that open here are never closed." }];
      return take(table.end());
    },
  };
}

function lineReader(): Reader {
  let rest = "";
  let line = 0;
  const take = (text: string): readonly FileRecord[] => {
    line += 1;
    const bare = line === 1 ? text.replace(/^\ufeff/, "") : text;
    return bare.trim() === "" ? [] : [parsedRecord(bare, line)];
  };
  return {
    push: (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      return lines.flatMap(take);
    },
    end: () => (rest.trim() === "" ? [] : take(rest)),
  };
}

const MOST_VALUE = 32 * 1024 * 1024;

interface Scan {
  /** The text from the start of the value that is being read. */
  rest: string;
  /** Up to where `rest` has been looked at. */
  at: number;
  /** Where the value starts in `rest`; -1 between values. */
  start: number;
  depth: number;
  isInString: boolean;
  isEscaped: boolean;
  line: number;
  startLine: number;
  isList: boolean | null;
  isFaulty: boolean;
}

/** Looks at one character. Returns a record when a value is complete, or when something stands where nothing may. */
function scanned(scan: Scan, character: string): FileRecord | null {
  if (character === "\n") scan.line += 1;
  if (scan.isInString) {
    if (scan.isEscaped) scan.isEscaped = false;
    else if (character === "\\") scan.isEscaped = true;
    else if (character === '"') scan.isInString = false;
    return null;
  }
  if (character === '"') scan.isInString = true;
  if (character === "{" || character === "[") {
    if (scan.depth === 0 && scan.start < 0) {
      scan.start = scan.at;
      scan.startLine = scan.line;
    }
    scan.depth += 1;
  } else if (character === "}" || character === "]") {
    scan.depth -= 1;
    if (scan.depth === 0) return ended(scan);
    if (scan.depth < 0) scan.depth = 0;
  } else if (scan.depth === 0 && !/[\s,\ufeff]/.test(character)) {
    scan.isFaulty = true;
    return { line: scan.line, fault: "Something other than a JSON object stands here. What follows is not read." };
  }
  return null;
}

function ended(scan: Scan): FileRecord {
  const record = parsedRecord(scan.rest.slice(scan.start, scan.at + 1), scan.startLine);
  scan.rest = scan.rest.slice(scan.at + 1);
  scan.at = -1;
  scan.start = -1;
  return record;
}

/** Reads the objects of a JSON list, or objects one after another. Other parts of the file are not kept. */
function valueReader(): Reader {
  const scan: Scan = { rest: "", at: 0, start: -1, depth: 0, isInString: false, isEscaped: false, line: 1, startLine: 1, isList: null, isFaulty: false };
  const skipListMark = (): void => {
    const found = /^[\s\ufeff]*\[/.exec(scan.rest);
    if (found === null && scan.rest.trim() === "") return;
    scan.isList = found !== null;
    if (found === null) return;
    scan.line += found[0].split("\n").length - 1;
    scan.rest = scan.rest.slice(found[0].length);
  };
  return {
    push: (text) => {
      const records: FileRecord[] = [];
      scan.rest += text;
      if (scan.isList === null) skipListMark();
      while (!scan.isFaulty && scan.at < scan.rest.length) {
        const character = scan.rest[scan.at] ?? "";
        if (scan.isList === true && scan.depth === 0 && character === "]") scan.isList = false;
        else {
          const record = scanned(scan, character);
          if (record !== null) records.push(record);
        }
        scan.at += 1;
      }
      if (scan.start < 0) {
        scan.rest = "";
        scan.at = 0;
      } else if (scan.rest.length > MOST_VALUE) {
        records.push({ line: scan.startLine, fault: "This object is longer than 32 MB." });
        scan.isFaulty = true;
      }
      return records;
    },
    end: () =>
      !scan.isFaulty && scan.start >= 0 ? [{ line: scan.startLine, fault: "The object that starts here has no end." }] : [],
  };
}

/** A reader of a format. `start` is the start of the text, which shows what divides the cells of a table. */
export function createReader(format: Format, start: string): Reader {
  switch (format) {
    case "csv":
      return tableReader(delimiterOf(start.replace(/^\ufeff/, "")));
    case "tsv":
      return tableReader("\t");
    case "jsonl":
      return lineReader();
    case "json":
      return valueReader();
  }
}
