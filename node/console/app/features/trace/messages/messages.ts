// Recognizes conversations in the input or the output of a span.
import { isFields, parsed, textOf, type Fields, type Message, type Part } from "./forms";
import { readCalls, readContent, reasoning } from "./parts";
import { readList, readMessage } from "./roles";
import { ofEvents, ofTelemetry } from "./telemetry";

export { sharedStart, withResults, type Joined } from "./joined";

/** Reads choices of OpenAI, candidates of Gemini and generations of LangChain. */
function ofChoices(value: unknown): readonly Message[] | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const inner = value.flat().map((choice) => {
    if (!isFields(choice)) return null;
    const message = choice["message"] ?? choice["content"] ?? choice["delta"];
    if (isFields(message)) return readMessage("role" in message || "type" in message ? message : { role: "assistant", ...message });
    const text = choice["text"];
    return typeof text === "string" && !("type" in choice) ? { role: "assistant", name: "", parts: readContent(text) } : null;
  });
  return inner.every((message) => message !== null) ? inner : null;
}

function system(value: unknown): readonly Message[] {
  const content = isFields(value) && "parts" in value ? value["parts"] : value;
  const parts = readContent(content);
  return parts.length === 0 ? [] : [{ role: "system", name: "", parts }];
}

/** Keys below which requests have their messages. */
const LISTS = ["messages", "contents", "input", "prompt", "history"] as const;
const ANSWERS = ["choices", "candidates", "generations"] as const;
const SYSTEMS = ["system", "systemInstruction", "system_instruction", "instructions", "systemPrompt"] as const;

/** Keys that requests have besides a text as their only message. */
const REQUEST = ["model", "instructions", "system", "config", "generationConfig", "temperature", "tools"] as const;

const user = (text: string): Message => ({ role: "user", name: "", parts: readContent(text) });

/** Reads the messages of a request: a list, one message, or, where it is clearly a request, a text. */
function listIn(fields: Fields, key: string): readonly Message[] | null {
  const value = parsed(fields[key]);
  const list = readList(value);
  if (list !== null) return list;
  const isTexts = key === "contents" && Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "string");
  if (isTexts) return value.map((one) => user(textOf(one)));
  if (isFields(value)) {
    const one = readMessage("role" in value || "type" in value || !("parts" in value) ? value : { role: "user", ...value });
    return one === null ? listBelow(value) : [one];
  }
  const isRequest = key !== "messages" && REQUEST.some((name) => name in fields);
  return isRequest && typeof value === "string" && value !== "" ? [user(value)] : null;
}

const listBelow = (fields: Fields): readonly Message[] | null => readList(fields["messages"]);

/** Reads an answer of the AI SDK: a text, reasoning and calls beside each other. */
function ofSdkAnswer(fields: Fields): readonly Message[] | null {
  const calls = fields["toolCalls"] ?? parsed(fields["ai.response.toolCalls"]);
  const text = fields["text"] ?? fields["ai.response.text"];
  const isAnswer = Array.isArray(calls) || "finishReason" in fields || "ai.response.text" in fields || "steps" in fields;
  if (!isAnswer || !(typeof text === "string" || Array.isArray(calls))) return null;
  const { response, reasoning: thought, reasoningText } = fields;
  const whole = isFields(response) ? readList(response["messages"]) : null;
  if (whole !== null) return whole;
  const said = textOf(reasoningText) === "" ? thought : reasoningText;
  const parts: readonly Part[] = [
    ...(typeof said === "string" && said !== "" ? [reasoning(said)] : readContent(Array.isArray(said) ? said : null)),
    ...readContent(text),
    ...readContent(fields["files"] ?? null),
    ...readCalls(calls),
  ];
  return [{ role: "assistant", name: "", parts }];
}

/** Reads the output of an answer: items of OpenAI's responses, or the message of Bedrock. */
function ofOutput(output: unknown): readonly Message[] | null {
  const list = readList(output);
  if (list !== null) return list;
  if (!isFields(output)) return null;
  const one = readMessage(output["message"]) ?? readMessage(output);
  return one === null ? null : [one];
}

function ofObject(fields: Fields): readonly Message[] | null {
  const one = readMessage(fields);
  if (one !== null) return [one];
  for (const key of ANSWERS) {
    const answers = ofChoices(fields[key]);
    if (answers !== null) return answers;
  }
  const given = ofTelemetry(fields) ?? ofOutput(fields["output"]) ?? ofSdkAnswer(fields);
  if (given !== null) return given;
  for (const key of LISTS) {
    const list = listIn(fields, key);
    if (list === null) continue;
    const config = isFields(fields["config"]) ? fields["config"] : {};
    const above = SYSTEMS.flatMap((name) => system(fields[name] ?? config[name]));
    return list.some((message) => message.role === "system") ? list : [...above, ...list];
  }
  return null;
}

/** The messages of an input or output; null if it is no conversation. */
export function messagesOf(value: unknown): readonly Message[] | null {
  const read = parsed(value);
  if (Array.isArray(read)) return readList(read) ?? ofChoices(read) ?? ofEvents(read);
  return isFields(read) ? ofObject(read) : null;
}
