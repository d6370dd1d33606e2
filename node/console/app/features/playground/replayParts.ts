// The parts of requests to models: contents, calls of tools and their results, tools, and parameters.
import { isRecord, type Fields } from "../../api/narrow";

/** The first of some fields that is a text; empty if none is. */
export function textIn(fields: Fields, ...keys: readonly string[]): string {
  for (const key of keys) {
    const value = fields[key];
    if (typeof value === "string" && value !== "") return value;
  }
  return "";
}

const recordsIn = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.filter(isRecord) : []);

const jsonText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value ?? {}));

const image = (url: string): Fields => ({ type: "image_url", image_url: { url } });

/** The address of an image that is part of a message; null for other parts. */
function imageOf(part: Fields): Fields | null {
  const { image_url: address, source, inlineData, inline_data: inline } = part;
  if (typeof address === "string") return image(address);
  if (isRecord(address)) return { type: "image_url", image_url: address };
  if (isRecord(source)) {
    const url = textIn(source, "url");
    return image(url === "" ? `data:${textIn(source, "media_type")};base64,${textIn(source, "data")}` : url);
  }
  const data = isRecord(inlineData) ? inlineData : inline;
  return isRecord(data) ? image(`data:${textIn(data, "mimeType", "mime_type")};base64,${textIn(data, "data")}`) : null;
}

const HANDLED: ReadonlySet<unknown> = new Set(["tool_use", "tool_result", "tool-call", "tool-result", "thinking", "redacted_thinking", "reasoning"]);

/** A part of a message as chats have it; null for one that is none, such as a call of a tool. */
function partOf(part: Fields): Fields | null {
  const found = imageOf(part);
  if (found !== null) return found;
  if (typeof part["text"] === "string") return part["thought"] === true ? null : { type: "text", text: part["text"] };
  const isOther = HANDLED.has(part["type"]) || "functionCall" in part || "functionResponse" in part;
  return isOther ? null : { type: "text", text: JSON.stringify(part) };
}

/** The content of a message: one text where it is nothing else. */
export function contentOf(value: unknown): string | readonly Fields[] {
  if (typeof value === "string") return value;
  const list = isRecord(value) ? [value] : Array.isArray(value) ? value : [];
  const parts = list.flatMap((one): readonly Fields[] => {
    if (typeof one === "string") return [{ type: "text", text: one }];
    const part = isRecord(one) ? partOf(one) : null;
    return part === null ? [] : [part];
  });
  if (!parts.every(({ type }) => type === "text")) return parts;
  return parts.map(({ text }) => text).join("\n");
}

const called = (id: string, name: string, args: unknown): Fields => ({
  id,
  type: "function",
  function: { name, arguments: jsonText(args) },
});

/** The calls of tools in a message: beside its content, or among its parts. */
export function callsOf(calls: unknown, parts: unknown): readonly Fields[] {
  const beside = recordsIn(calls).map((call) => {
    const inner = call["function"];
    return isRecord(inner)
      ? called(textIn(call, "id"), textIn(inner, "name"), inner["arguments"])
      : called(textIn(call, "id"), textIn(call, "name"), call["args"] ?? call["arguments"]);
  });
  const among = recordsIn(parts).flatMap((part, index): readonly Fields[] => {
    if (part["type"] === "tool_use") return [called(textIn(part, "id"), textIn(part, "name"), part["input"])];
    if (part["type"] === "tool-call") return [called(textIn(part, "toolCallId"), textIn(part, "toolName"), part["input"] ?? part["args"])];
    const call = part["functionCall"];
    return isRecord(call) ? [called(textIn(call, "id") || `${textIn(call, "name")}_${index}`, textIn(call, "name"), call["args"])] : [];
  });
  return [...beside, ...among];
}

/** The messages that say what tools returned, from the parts of one. */
export const resultsOf = (parts: unknown): readonly Fields[] =>
  recordsIn(parts).flatMap((part, index): readonly Fields[] => {
    const returned = (id: string, value: unknown) => [{ role: "tool", tool_call_id: id, content: contentOf(value) || jsonText(value) }];
    if (part["type"] === "tool_result") return returned(textIn(part, "tool_use_id"), part["content"] ?? "");
    if (part["type"] === "tool-result") return returned(textIn(part, "toolCallId"), jsonText(part["output"] ?? part["result"]));
    const result = part["functionResponse"];
    if (!isRecord(result)) return [];
    return returned(textIn(result, "id") || `${textIn(result, "name")}_${index}`, jsonText(result["response"]));
  });

/** Tools in the form of chats, from the first of some places that has any. */
export function toolsOf(places: readonly unknown[]): readonly Fields[] {
  for (const place of places) {
    const tools = recordsIn(place).flatMap((tool): readonly Fields[] => {
      if (isRecord(tool["function"])) return [{ type: "function", function: tool["function"] }];
      const declared = recordsIn(tool["functionDeclarations"] ?? tool["function_declarations"]);
      if (declared.length > 0) return declared.map((one) => ({ type: "function", function: one }));
      const name = textIn(tool, "name");
      if (name === "") return [];
      const { description, parameters, input_schema: schema, strict } = tool;
      const given = { name, description, parameters: parameters ?? schema, strict };
      const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value != null));
      return [{ type: "function", function: said }];
    });
    if (tools.length > 0) return tools;
  }
  return [];
}

/** The parameters that are taken over, by the names that APIs have for them. */
const NAMES: Readonly<Record<string, string>> = {
  temperature: "temperature",
  top_p: "top_p",
  topP: "top_p",
  top_k: "top_k",
  topK: "top_k",
  max_tokens: "max_tokens",
  max_output_tokens: "max_tokens",
  maxOutputTokens: "max_tokens",
  max_completion_tokens: "max_completion_tokens",
  seed: "seed",
  stop: "stop",
  stop_sequences: "stop",
  stopSequences: "stop",
  frequency_penalty: "frequency_penalty",
  presence_penalty: "presence_penalty",
  reasoning_effort: "reasoning_effort",
  response_format: "response_format",
  parallel_tool_calls: "parallel_tool_calls",
};

/** The choice of a tool in the form of chats; undefined for what is none. */
function choiceOf(value: unknown): unknown {
  if (typeof value === "string") return value === "any" ? "required" : value;
  if (!isRecord(value)) return undefined;
  if (isRecord(value["function"])) return value;
  const name = textIn(value, "name");
  if (name !== "") return { type: "function", function: { name } };
  return choiceOf(value["type"]);
}

/** The parameters of a call. A place before another one counts first. */
export function parametersOf(...places: readonly Fields[]): Fields {
  const params: Record<string, unknown> = {};
  for (const place of places.flatMap((one) => [one, one["generationConfig"], one["generation_config"]]).filter(isRecord)) {
    for (const [key, value] of Object.entries(place)) {
      const name = Object.hasOwn(NAMES, key) ? NAMES[key] : undefined;
      if (name !== undefined && value !== null) params[name] ??= value;
    }
    const choice = choiceOf(place["tool_choice"]);
    if (choice !== undefined) params["tool_choice"] ??= choice;
    const { reasoning, text } = place;
    if (isRecord(reasoning) && typeof reasoning["effort"] === "string") params["reasoning_effort"] ??= reasoning["effort"];
    const format = isRecord(text) ? text["format"] : null;
    if (isRecord(format) && typeof format["type"] === "string" && format["type"] !== "text") {
      const { type, ...schema } = format;
      params["response_format"] ??= type === "json_schema" ? { type, json_schema: schema } : { type };
    }
  }
  return params;
}
