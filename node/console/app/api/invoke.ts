// Runs a prompt or a function on the server, and reads its answer while it arrives.
import { send } from "./client";
import { isRecord, textOrNull, type Fields } from "./narrow";
import { eventsOf, type ServerEvent } from "./sse";

/** What runs. */
export type Invoked =
  /** A saved function or prompt; without a version the newest. */
  | { readonly kind: "saved"; readonly id: string; readonly version?: string }
  /** A prompt that need not be saved, as the `prompt_data` of a record. */
  | { readonly kind: "prompt"; readonly prompt: Fields; readonly name?: string; readonly functionType?: string }
  /** A function that every organization has, such as `ExactMatch`. */
  | { readonly kind: "global"; readonly name: string; readonly functionType?: string };

export interface InvokeParent {
  readonly object_type: "project_logs" | "experiment" | "playground_logs";
  readonly object_id: string;
  readonly row_ids?: { readonly id: string; readonly span_id: string; readonly root_span_id: string };
}

export interface Invocation {
  readonly what: Invoked;
  /** The project whose AI secrets are used. */
  readonly projectId: string;
  readonly input?: unknown;
  readonly expected?: unknown;
  readonly metadata?: Fields | null;
  /** Messages after those of the prompt. */
  readonly messages?: readonly Fields[];
  /** `parallel` gives calls of tools with their names; `auto`, the default, the arguments of the first one. */
  readonly mode?: "auto" | "json" | "text" | "parallel";
  /** Whether a variable without a value is a failure. */
  readonly isStrict?: boolean;
  /** Where the spans go; absent to keep none. */
  readonly parent?: InvokeParent;
}

/** What the headers of an answer say. */
export interface InvokeHead {
  /** The id of the function's row, if it is logged. */
  readonly spanId: string | null;
  /** The function's span, in the form in which SDKs pass it on. */
  readonly spanExport: string | null;
  /** The name of the AI secret that was used. */
  readonly endpoint: string | null;
  /** The model that answered; null if the answer does not tell. */
  readonly model: string | null;
  readonly isCached: boolean;
}

export type InvokeEvent =
  | { readonly kind: "head"; readonly head: InvokeHead }
  | { readonly kind: "text"; readonly text: string }
  /** A piece of JSON text. */
  | { readonly kind: "json"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  /** What goes on inside, such as a tool that the server runs: `event` is start, a delta, done or error. */
  | { readonly kind: "progress"; readonly id: string; readonly name: string; readonly event: string; readonly data: string }
  | { readonly kind: "error"; readonly message: string }
  | { readonly kind: "done" };

/** An answer as far as it has arrived. */
export interface Gathered {
  readonly text: string;
  readonly json: string;
  readonly reasoning: string;
  /** Tools that the server ran or runs, in their order. */
  readonly tools: readonly { readonly id: string; readonly name: string; readonly state: "running" | "done" | "failed" }[];
  readonly head: InvokeHead | null;
  readonly error: string | null;
  readonly isDone: boolean;
}

/** A call of a tool that the model asks for and the server does not run. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text that data hold: a JSON string, or an object with a message. */
function textIn(data: string): string {
  const value = parsed(data);
  if (typeof value === "string") return value;
  return isRecord(value) ? (textOrNull(value, "message") ?? data) : data;
}

/** Reads an event; null for those that say nothing, such as the start. */
export function readInvokeEvent({ name, data }: ServerEvent): InvokeEvent | null {
  switch (name) {
    case "text_delta":
      return { kind: "text", text: textIn(data) };
    case "json_delta":
      return { kind: "json", text: data };
    case "reasoning_delta":
      return { kind: "reasoning", text: textIn(data) };
    case "error":
      return { kind: "error", message: textIn(data) };
    case "done":
      return { kind: "done" };
    case "progress": {
      const fields = parsed(data);
      if (!isRecord(fields)) return null;
      const of = (key: string): string => textOrNull(fields, key) ?? "";
      return { kind: "progress", id: of("id"), name: of("name"), event: of("event"), data: of("data") };
    }
    default:
      return null;
  }
}

const headOf = ({ headers }: Response): InvokeHead => ({
  spanId: headers.get("x-bt-span-id"),
  spanExport: headers.get("x-bt-span-export"),
  endpoint: headers.get("x-bt-used-endpoint"),
  model: headers.get("x-bt-used-model"),
  isCached: headers.get("x-bt-cached") === "HIT",
});

function nameOf(what: Invoked): Fields {
  switch (what.kind) {
    case "saved":
      return { function_id: what.id, ...(what.version === undefined ? {} : { version: what.version }) };
    case "prompt": {
      const { prompt, name, functionType } = what;
      return {
        inline_prompt: prompt,
        ...(name === undefined ? {} : { name }),
        ...(functionType === undefined ? {} : { function_type: functionType }),
      };
    }
    case "global":
      return { global_function: what.name, function_type: what.functionType ?? "scorer" };
  }
}

/** The body of an invocation. Absent members are left out. */
export function invokeBody(invocation: Invocation, isStream: boolean): Fields {
  const { what, input, expected, metadata, messages, mode, isStrict, parent } = invocation;
  const given = { input, expected, metadata, messages, mode, strict: isStrict, parent };
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return { ...nameOf(what), ...said, stream: isStream };
}

const sent = (organization: string, invocation: Invocation, isStream: boolean, signal?: AbortSignal) =>
  send("POST", "/function/invoke", {
    organization,
    headers: { "x-bt-project-id": invocation.projectId },
    body: invokeBody(invocation, isStream),
    ...(signal === undefined ? {} : { signal }),
  });

/**
 * Runs a prompt or a function and gives its answer piece by piece, first what the headers say. A failure before the first
 * piece is thrown as `ApiError`; a later one is an event. To stop it, abort the signal or leave the loop.
 */
export async function* invoke(
  organization: string,
  invocation: Invocation,
  signal?: AbortSignal,
): AsyncGenerator<InvokeEvent, void, undefined> {
  const response = await sent(organization, invocation, true, signal);
  yield { kind: "head", head: headOf(response) };
  let isDone = false;
  if (response.body !== null) {
    for await (const one of eventsOf(response.body)) {
      const event = readInvokeEvent(one);
      if (event === null) continue;
      yield event;
      isDone ||= event.kind === "done";
    }
  }
  if (!isDone) yield { kind: "error", message: "The answer ended before it was complete." };
}

/** Runs a function and returns its value. */
export async function invokeWhole(organization: string, invocation: Invocation, signal?: AbortSignal): Promise<unknown> {
  const response = await sent(organization, invocation, false, signal);
  return response.json();
}

export const NOTHING_GATHERED: Gathered = {
  text: "",
  json: "",
  reasoning: "",
  tools: [],
  head: null,
  error: null,
  isDone: false,
};

function withTool(tools: Gathered["tools"], id: string, name: string, event: string): Gathered["tools"] {
  if (event === "start") return [...tools, { id, name, state: "running" }];
  if (event !== "done" && event !== "error") return tools;
  // `done` also follows `error`.
  const state = event === "done" ? "done" : "failed";
  return tools.map((tool) => (tool.id === id && tool.state === "running" ? { ...tool, state } : tool));
}

/** Adds an event to an answer. */
export function gather(before: Gathered, event: InvokeEvent): Gathered {
  switch (event.kind) {
    case "head":
      return { ...before, head: event.head };
    case "text":
      return { ...before, text: before.text + event.text };
    case "json":
      return { ...before, json: before.json + event.text };
    case "reasoning":
      return { ...before, reasoning: before.reasoning + event.text };
    case "progress":
      return { ...before, tools: withTool(before.tools, event.id, event.name, event.event) };
    case "error":
      return { ...before, error: before.error ?? event.message };
    case "done":
      return { ...before, isDone: true };
  }
}

/** The value of an answer: JSON if any came, else its text. JSON that is not whole yet is given as text. */
export function valueOf({ text, json }: Gathered): unknown {
  if (json === "") return text;
  const value = parsed(json);
  return value === undefined ? json : value;
}

/** The calls of tools in a value that mode `parallel` gave; null if it is something else. */
export function toolCallsOf(value: unknown): readonly ToolCall[] | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const calls: ToolCall[] = [];
  for (const one of value) {
    if (!isRecord(one) || typeof one["name"] !== "string" || !("arguments" in one)) return null;
    calls.push({ id: textOrNull(one, "id") ?? "", name: one["name"], arguments: one["arguments"] });
  }
  return calls;
}
