// Reads the error of a span: its message, and the stack that SDKs put behind it.
import { isRecord } from "../../../api/narrow";
import { asText } from "../../../lib/json";

export interface ReadError {
  readonly message: string;
  /** The lines of the stack; empty if there is none. */
  readonly stack: string;
}

/** Where the stack of a text begins, as Python, JavaScript, Java, Go and Ruby write it. */
const STACK = /\n\s*(?:Traceback \(most recent call last\):|at .+[:(]|File ".+", line \d+|goroutine \d+ \[|from .+:\d+:in )/;

/** Python writes the stack first and the message last. */
function ofPython(text: string): ReadError | null {
  const start = text.indexOf("Traceback (most recent call last):");
  if (start < 0) return null;
  const before = text.slice(0, start).trim();
  const last = text.trimEnd().split("\n").at(-1) ?? "";
  return { message: before === "" ? last : before, stack: text.slice(start) };
}

function ofText(text: string): ReadError {
  const python = ofPython(text);
  if (python !== null) return python;
  const start = STACK.exec(text)?.index ?? -1;
  return start <= 0 ? { message: text, stack: "" } : { message: text.slice(0, start), stack: text.slice(start + 1) };
}

export function readError(error: unknown): ReadError {
  if (typeof error === "string") return ofText(error);
  if (!isRecord(error)) return { message: asText(error), stack: "" };
  const { message, stack, traceback } = error;
  const trace = typeof stack === "string" ? stack : typeof traceback === "string" ? traceback : "";
  if (typeof message !== "string") return { message: asText(error), stack: "" };
  return trace === "" ? ofText(message) : { message, stack: trace };
}
