// Reads conversations in attributes and events of OpenTelemetry, by the conventions for generative AI and those before.
import { firstText, isFields, parsed, textOf, type Fields, type Message } from "./forms";
import { readContent } from "./parts";
import { readList, readMessage, roleOf } from "./roles";

/** Attributes with a list of messages, and those with instructions above them. */
const LISTS = ["gen_ai.input.messages", "gen_ai.output.messages", "ai.prompt.messages", "gen_ai.prompt", "gen_ai.completion"] as const;
const SYSTEMS = ["gen_ai.system_instructions"] as const;

/** Attributes with an index: `gen_ai.prompt.0.content`, `llm.input_messages.0.message.content`. */
const INDEXED = /^(?:gen_ai\.(?:prompt|completion)|llm\.(?:input|output)_messages)\.(\d+)\.(?:message\.)?(.+)$/;

function ofLists(fields: Fields): readonly Message[] | null {
  const found = LISTS.flatMap((key) => readList(parsed(fields[key])) ?? []);
  if (found.length === 0) return null;
  const above = SYSTEMS.flatMap((key) => readContent(parsed(fields[key])));
  return above.length === 0 ? found : [{ role: "system", name: "", parts: above }, ...found];
}

/** Sets a value at a path of keys and indexes, in objects without a prototype. */
function put(target: Map<string, unknown>, steps: readonly string[], value: unknown): void {
  const [step = "", ...rest] = steps;
  if (rest.length === 0) {
    target.set(step, value);
    return;
  }
  const known = target.get(step);
  const inner = known instanceof Map ? known : new Map<string, unknown>();
  target.set(step, inner);
  put(inner, rest, value);
}

/** Makes lists and objects of what `put` has set. */
function plain(value: unknown): unknown {
  if (!(value instanceof Map)) return value;
  const entries = [...value].map(([key, inner]) => [String(key), plain(inner)] as const);
  return entries.every(([key]) => /^\d+$/.test(key)) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
}

/** The deepest path below an index that is read. */
const STEPS_MAX = 8;

function ofIndexed(fields: Fields): readonly Message[] | null {
  const groups = new Map<string, Map<string, unknown>>();
  for (const [key, value] of Object.entries(fields)) {
    const [, index, rest] = INDEXED.exec(key) ?? [];
    if (index === undefined || rest === undefined) continue;
    const group = `${key.startsWith("llm.output") || key.startsWith("gen_ai.completion") ? 1 : 0}/${index}`;
    const inner = groups.get(group) ?? new Map<string, unknown>();
    groups.set(group, inner);
    const steps = rest.replaceAll(/\b(?:tool_call|message_content)\./g, "").split(".");
    if (steps.length <= STEPS_MAX) put(inner, steps, value);
  }
  const messages = [...groups.values()].map((group) => {
    const read = plain(group);
    return readMessage(isFields(read) ? { ...read, content: parsed(read["content"] ?? read["contents"] ?? null) } : read);
  });
  return messages.length > 0 && messages.every((message) => message !== null) ? messages : null;
}

/** Reads an event such as `gen_ai.user.message`, whose content is in its body or in its attributes. */
function ofEvent(value: unknown): Message | null {
  if (!isFields(value)) return null;
  const attributes = isFields(value["attributes"]) ? value["attributes"] : {};
  const name = firstText(value["event.name"], value["event_name"], value["name"], attributes["event.name"]);
  const body = [value["body"], attributes["event_body"], attributes, value].map(parsed).find((one) => isFields(one) && Object.keys(one).length > 0);
  if (!isFields(body)) return null;
  if (name === "gen_ai.choice") {
    const message = parsed(body["message"] ?? body["gen_ai.event.content"]);
    return isFields(message) ? readMessage({ role: "assistant", ...message }) : null;
  }
  const role = roleOf(/^gen_ai\.(\w+)\.message$/.exec(name)?.[1]);
  if (role === null) return null;
  const content = body["content"] ?? parsed(body["gen_ai.event.content"]);
  const tool = role === "tool" ? { tool_call_id: textOf(body["id"]) } : {};
  return readMessage({ ...body, ...tool, role, content });
}

/** Reads events; null if one of them is no message. */
export function ofEvents(value: unknown): readonly Message[] | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const messages = value.map(ofEvent);
  return messages.every((message) => message !== null) ? messages : null;
}

export const ofTelemetry = (fields: Fields): readonly Message[] | null =>
  ofLists(fields) ?? ofIndexed(fields) ?? ofEvents(parsed(fields["events"]));
