// Reads the parts of a message: those of OpenAI, Anthropic, Gemini, Bedrock, LangChain, the AI SDK and OpenTelemetry.
import { firstText, isFields, parsed, textOf, type Fields, type Part } from "./forms";
import { attachmentIn, kindOf, mediaPart } from "./media";

type Reader = (part: Fields) => Part | null;

export const call = (id: unknown, name: unknown, input: unknown): Part => ({
  kind: "call",
  id: textOf(id),
  name: textOf(name),
  input: parsed(input),
});

/** What a tool returned. A list with nothing but texts is one text. */
export function result(id: unknown, output: unknown, isError = false): Part {
  const texts = Array.isArray(output)
    ? output.map((one) => (isFields(one) && typeof one["text"] === "string" && !("json" in one) ? one["text"] : null))
    : [];
  const isText = texts.length > 0 && texts.every((text) => text !== null);
  return { kind: "result", id: textOf(id), output: parsed(isText ? texts.join("\n") : output), isError };
}

export const text = (value: unknown): Part => ({ kind: "text", text: textOf(value) });

export const reasoning = (value: unknown): Part => ({ kind: "reasoning", text: textOf(value) });

/** The text of a list of parts with a text each, as summaries of reasoning have it. */
const joined = (value: unknown): string =>
  Array.isArray(value)
    ? value.map((one) => (isFields(one) ? textOf(one["text"]) : textOf(one))).join("\n")
    : textOf(value);

const asReasoning: Reader = (part) =>
  reasoning(firstText(part["text"], part["thinking"], part["content"], part["reasoning"], joined(part["summary"]), joined(part["content"])));

/** Reads audio of OpenAI: data with a format, and perhaps what was said. */
function asAudio(part: Fields): Part {
  const audio = isFields(part["input_audio"]) ? part["input_audio"] : isFields(part["audio"]) ? part["audio"] : part;
  return mediaPart(audio, "audio", `audio/${textOf(audio["format"]) || "wav"}`);
}

/** The AI SDK wraps what a tool returned: `{type: "json", value}`. */
function asSdkResult(part: Fields): Part {
  const output = part["output"] ?? part["result"];
  const type = isFields(output) ? textOf(output["type"]) : "";
  const isWrapped = isFields(output) && "value" in output && /^(?:error-)?(?:text|json)$|^content$/.test(type);
  return result(part["toolCallId"], isWrapped ? output["value"] : output, part["isError"] === true || type.startsWith("error-"));
}

/** A call of OpenAI's own tools, which has its result in itself. */
const ownTool = (part: Fields, name: string): Part => call(part["id"], name, part["action"] ?? part["queries"] ?? part["code"] ?? part);

const asFile: Reader = (part) => mediaPart(part["file"] ?? part["source"] ?? part, "file", textOf(part["mediaType"]));

const BY_TYPE: Readonly<Record<string, Reader>> = {
  text: (part) => text(part["text"] ?? part["content"]),
  input_text: (part) => text(part["text"]),
  output_text: (part) => text(part["text"]),
  summary_text: (part) => reasoning(part["text"]),
  reasoning: asReasoning,
  thinking: asReasoning,
  redacted_thinking: () => reasoning("(redacted)"),
  "redacted-reasoning": () => reasoning("(redacted)"),
  refusal: (part) => ({ kind: "refusal", text: textOf(part["refusal"]) }),
  image_url: (part) => mediaPart(part["image_url"], "image"),
  input_image: (part) => mediaPart(part["image_url"] ?? part, "image"),
  image: (part) => mediaPart(part["source"] ?? part["image"] ?? part, "image", firstText(part["mediaType"], part["mimeType"], "image/png")),
  image_generation_call: (part) => mediaPart(part["result"], "image", "image/png"),
  input_audio: asAudio,
  output_audio: asAudio,
  audio: asAudio,
  file: asFile,
  input_file: asFile,
  document: asFile,
  media: (part) => mediaPart(part, "file"),
  blob: (part) => mediaPart(part["content"], kindOf(textOf(part["mime_type"]) || `${textOf(part["modality"])}/x`), textOf(part["mime_type"])),
  uri: (part) => mediaPart(part["uri"], kindOf(textOf(part["mime_type"]) || `${textOf(part["modality"])}/x`), textOf(part["mime_type"])),
  braintrust_attachment: (part) => mediaPart(part, "file"),
  external_attachment: (part) => mediaPart(part, "file"),
  tool_use: (part) => call(part["id"], part["name"], part["input"]),
  server_tool_use: (part) => call(part["id"], part["name"], part["input"]),
  mcp_tool_use: (part) => call(part["id"], part["name"], part["input"]),
  "tool-call": (part) => call(part["toolCallId"], part["toolName"], part["input"] ?? part["args"]),
  tool_call: (part) => call(part["id"], part["name"], part["arguments"] ?? part["args"]),
  function_call: (part) => call(part["call_id"] ?? part["id"], part["name"], part["arguments"]),
  custom_tool_call: (part) => call(part["call_id"] ?? part["id"], part["name"], part["input"]),
  mcp_call: (part) => call(part["id"], part["name"], part["arguments"]),
  web_search_call: (part) => ownTool(part, "web_search"),
  file_search_call: (part) => ownTool(part, "file_search"),
  code_interpreter_call: (part) => ownTool(part, "code_interpreter"),
  computer_call: (part) => call(part["call_id"], "computer", part["action"]),
  tool_result: (part) => result(part["tool_use_id"], part["content"], part["is_error"] === true),
  mcp_tool_result: (part) => result(part["tool_use_id"], part["content"], part["is_error"] === true),
  web_search_tool_result: (part) => result(part["tool_use_id"], part["content"]),
  "tool-result": asSdkResult,
  "tool-error": (part) => result(part["toolCallId"], part["error"], true),
  tool_call_response: (part) => result(part["id"], part["response"] ?? part["result"]),
  function_call_output: (part) => result(part["call_id"], part["output"]),
  custom_tool_call_output: (part) => result(part["call_id"], part["output"]),
  computer_call_output: (part) => result(part["call_id"], part["output"]),
};

/** Items of OpenAI's responses that are no messages. */
export const isItem = (type: string): boolean => Object.hasOwn(BY_TYPE, type) && (type === "reasoning" || /_call(?:_output)?$/.test(type));

/** The value of the first of some keys that is an object. */
function under(part: Fields, ...keys: readonly string[]): Fields | null {
  const found = keys.map((key) => part[key]).find(isFields);
  return found ?? null;
}

/** Parts of Gemini, whose keys are written in two ways. */
function ofGemini(part: Fields): Part | null {
  const called = under(part, "functionCall", "function_call");
  if (called !== null) return call(called["id"] ?? called["name"], called["name"], called["args"] ?? {});
  const returned = under(part, "functionResponse", "function_response");
  if (returned !== null) return result(returned["id"] ?? returned["name"], returned["response"]);
  const data = under(part, "inlineData", "inline_data", "fileData", "file_data");
  if (data !== null) return mediaPart(data, "file");
  const code = under(part, "executableCode", "executable_code");
  if (code !== null) return call("code_execution", "code_execution", code["code"]);
  const ran = under(part, "codeExecutionResult", "code_execution_result");
  return ran === null ? null : result("code_execution", ran["output"], ran["outcome"] === "OUTCOME_FAILED");
}

/** A medium of Bedrock: `{image: {format, source: {bytes}}}`. */
function ofBedrockMedia(part: Fields): Part | null {
  for (const kind of ["image", "audio", "video", "document"] as const) {
    const medium = part[kind];
    if (!isFields(medium) || !("source" in medium)) continue;
    const format = textOf(medium["format"]);
    const type = kind === "document" ? `application/${format}` : `${kind}/${format}`;
    return mediaPart(medium, kind === "document" ? "file" : kind, type);
  }
  return null;
}

/** Parts that are told apart by the key that they have: those of Gemini and of Bedrock. */
function byKey(part: Fields): Part | null {
  if (typeof part["text"] === "string") return part["thought"] === true ? reasoning(part["text"]) : text(part["text"]);
  const { toolUse, toolResult, reasoningContent } = part;
  if (isFields(toolUse)) return call(toolUse["toolUseId"], toolUse["name"], toolUse["input"]);
  if (isFields(toolResult)) return result(toolResult["toolUseId"], toolResult["content"], toolResult["status"] === "error");
  if (isFields(reasoningContent)) {
    const inner = reasoningContent["reasoningText"];
    return reasoning(isFields(inner) ? inner["text"] : inner);
  }
  return ofGemini(part) ?? ofBedrockMedia(part);
}

/** Calls of tools in messages of the AI SDK's chats: `tool-NAME`, with the result in themselves. */
function ofUiTool(part: Fields, type: string): readonly Part[] | null {
  const inner = isFields(part["toolInvocation"]) ? part["toolInvocation"] : part;
  if (!(type === "tool-invocation" || type === "dynamic-tool" || (type.startsWith("tool-") && "state" in part))) return null;
  const name = firstText(inner["toolName"], type.slice("tool-".length));
  const parts = [call(inner["toolCallId"], name, inner["input"] ?? inner["args"])];
  const failure = textOf(inner["errorText"]);
  if (failure !== "") return [...parts, result(inner["toolCallId"], failure, true)];
  const output = inner["output"] ?? inner["result"];
  return output === undefined ? parts : [...parts, result(inner["toolCallId"], output)];
}

/** Marks between parts that say nothing to a reader. */
const isMark = (part: Fields): boolean => part["type"] === "step-start" || isFields(part["cachePoint"]);

/** Reads one element of a content. */
export function readParts(value: unknown): readonly Part[] {
  if (typeof value === "string") return [text(value)];
  if (!isFields(value)) return [{ kind: "other", value }];
  if (isMark(value)) return [];
  const type = textOf(value["type"]);
  const read = Object.hasOwn(BY_TYPE, type) ? BY_TYPE[type]?.(value) : null;
  if (read !== null && read !== undefined) return [read];
  const tool = ofUiTool(value, type);
  if (tool !== null) return tool;
  const found = attachmentIn(value) === null ? byKey(value) : mediaPart(value, "file");
  return [found ?? { kind: "other", value }];
}

/** Reads what a message contains: a text, or a list of parts. */
export function readContent(content: unknown): readonly Part[] {
  if (content === null || content === undefined || content === "") return [];
  if (Array.isArray(content)) return content.flatMap(readParts);
  return readParts(content);
}

/** Reads the calls of tools that stand beside the content, as OpenAI, LangChain and the AI SDK have them. */
export function readCalls(value: unknown): readonly Part[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isFields).map((one) => {
    const inner = isFields(one["function"]) ? one["function"] : one;
    const id = one["id"] ?? inner["id"] ?? one["toolCallId"];
    return call(id, inner["name"] ?? one["toolName"], inner["arguments"] ?? inner["args"] ?? inner["input"]);
  });
}
