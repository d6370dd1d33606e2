// Reads messages by their role, and those of LangChain by their class.
import { firstText, isFields, parsed, textOf, type Fields, type Message, type Part } from "./forms";
import { isItem, readCalls, readContent, readParts, reasoning, result } from "./parts";
import { mediaPart } from "./media";

/** The role of each name that APIs have for it. */
const ROLES: Readonly<Record<string, string>> = {
  system: "system",
  developer: "system",
  user: "user",
  human: "user",
  assistant: "assistant",
  ai: "assistant",
  model: "assistant",
  chatbot: "assistant",
  tool: "tool",
  function: "tool",
  humanmessage: "user",
  humanmessagechunk: "user",
  aimessage: "assistant",
  aimessagechunk: "assistant",
  systemmessage: "system",
  systemmessagechunk: "system",
  toolmessage: "tool",
  toolmessagechunk: "tool",
  functionmessage: "tool",
};

/** The role that a name stands for; null for other words. */
export function roleOf(name: unknown): string | null {
  const key = textOf(name).toLowerCase();
  return Object.hasOwn(ROLES, key) ? (ROLES[key] ?? null) : null;
}

/** Makes what a tool returned of the parts of its message. */
function asResult(fields: Fields, parts: readonly Part[]): readonly Part[] {
  const id = firstText(fields["tool_call_id"], fields["toolCallId"], fields["id"], fields["name"]);
  if (parts.some((part) => part.kind === "result")) return parts;
  const isError = fields["status"] === "error" || fields["is_error"] === true;
  return [result(id, fields["content"] ?? fields["parts"], isError)];
}

const CONTENTS = ["content", "parts", "tool_calls", "toolCalls", "function_call", "audio", "refusal"] as const;

/** Reads a message that has a role; null if the value is none. */
export function withRole(fields: Fields): Message | null {
  const role = roleOf(fields["role"]);
  if (role === null || !CONTENTS.some((key) => key in fields)) return null;
  const hasParts = Array.isArray(fields["parts"]) && fields["parts"].length > 0;
  const thought = firstText(fields["reasoning_content"], fields["reasoning"]);
  const { audio, refusal, function_call: legacy } = fields;
  const parts: readonly Part[] = [
    ...(thought === "" ? [] : [reasoning(thought)]),
    ...readContent(hasParts ? fields["parts"] : fields["content"]),
    ...(isFields(audio) ? [...readContent(audio["transcript"]), mediaPart(audio, "audio", "audio/wav")] : []),
    ...(typeof refusal === "string" ? [{ kind: "refusal", text: refusal } as const] : []),
    ...readCalls(fields["tool_calls"] ?? fields["toolCalls"]),
    ...(isFields(legacy) ? readCalls([legacy]) : []),
  ];
  return { role, name: textOf(fields["name"]), parts: role === "tool" ? asResult(fields, parts) : parts };
}

/** Reads a message of LangChain, with its constructor or its type. */
function ofLangChain(fields: Fields): Message | null {
  const inner = [fields["kwargs"], fields["lc_kwargs"], fields["data"]].find(isFields) ?? fields;
  const path = fields["id"];
  const role = roleOf(Array.isArray(path) ? path.at(-1) : fields["type"]);
  if (role === null || !("content" in inner)) return null;
  const extra = isFields(inner["additional_kwargs"]) ? inner["additional_kwargs"] : {};
  const own = Array.isArray(inner["tool_calls"]) && inner["tool_calls"].length > 0 ? inner["tool_calls"] : extra["tool_calls"];
  const content = readContent(inner["content"]);
  // the calls stand a second time within the content where a model wrote them there
  const calls = content.some((part) => part.kind === "call") ? [] : readCalls(own);
  const parts = [...content, ...calls];
  return { role, name: textOf(inner["name"]), parts: role === "tool" ? asResult(inner, parts) : parts };
}

/** Reads an item of OpenAI's responses that is no message. */
function ofItem(fields: Fields): Message | null {
  const type = textOf(fields["type"]);
  if (!isItem(type)) return null;
  const parts = readParts(fields);
  return { role: type.endsWith("_output") ? "tool" : "assistant", name: "", parts };
}

/** Reads `["human", "Hello"]`, as LangChain's prompts may be. */
function ofPair(value: readonly unknown[]): Message | null {
  const role = value.length === 2 ? roleOf(value[0]) : null;
  return role !== null && typeof value[1] === "string" ? { role, name: "", parts: readContent(value[1]) } : null;
}

export function readMessage(value: unknown): Message | null {
  if (Array.isArray(value)) return ofPair(value);
  const fields = parsed(value);
  return isFields(fields) ? (withRole(fields) ?? ofItem(fields) ?? ofLangChain(fields)) : null;
}

/** Reads a list of messages; null if one of them is none. LangChain puts lists into lists. */
export function readList(value: unknown): readonly Message[] | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  if (value.length === 1 && Array.isArray(value[0]) && ofPair(value[0]) === null) return readList(value[0]);
  const messages = value.map(readMessage);
  return messages.every((message) => message !== null) ? messages : null;
}
