// Makes a prompt of a span of a model: its messages, tools, model and parameters, whatever API they were written for.
import { isRecord, type Fields } from "../../api/narrow";
import { callsOf, contentOf, parametersOf, resultsOf, textIn, toolsOf } from "./replayParts";
import type { Named } from "./variants";

/** The role in a chat that a name of another API stands for; null for other words. */
function roleOf(name: unknown): string | null {
  switch (name) {
    case "user":
    case "human":
      return "user";
    case "assistant":
    case "ai":
    case "model":
    case "chatbot":
      return "assistant";
    case "system":
    case "developer":
    case "tool":
      return name;
    default:
      return null;
  }
}

/** Reads an item of OpenAI's responses that is no message, such as a call of a tool. */
function ofItem(fields: Fields): readonly Fields[] | null {
  const id = textIn(fields, "call_id", "id");
  switch (fields["type"]) {
    case "function_call": {
      const call = { id, type: "function", function: { name: textIn(fields, "name"), arguments: textIn(fields, "arguments") } };
      return [{ role: "assistant", content: "", tool_calls: [call] }];
    }
    case "function_call_output": {
      const { output } = fields;
      return [{ role: "tool", tool_call_id: id, content: typeof output === "string" ? output : JSON.stringify(output ?? "") }];
    }
    case "reasoning":
      return [];
    default:
      return null;
  }
}

/** Reads a message; null if the value is none. One with results of tools becomes several. */
function ofMessage(value: unknown): readonly Fields[] | null {
  if (!isRecord(value)) return null;
  const role = roleOf(value["role"]);
  if (role === null) return ofItem(value);
  const parts = value["parts"] ?? value["content"];
  const results = resultsOf(parts);
  const calls = callsOf(value["tool_calls"], parts);
  const content = contentOf(parts);
  const own: Fields = {
    role,
    content,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(role === "tool" && typeof value["tool_call_id"] === "string" ? { tool_call_id: value["tool_call_id"] } : {}),
  };
  const isEmpty = content === "" && calls.length === 0;
  return results.length > 0 && isEmpty ? results : [...results, own];
}

function ofList(value: unknown): readonly Fields[] | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const messages = value.map(ofMessage);
  return messages.every((one) => one !== null) ? messages.flat() : null;
}

/** Keys below which requests have their messages, and their instructions. */
const LISTS = ["messages", "contents", "input", "prompt"] as const;
const SYSTEMS = ["system", "systemInstruction", "system_instruction", "instructions"] as const;

/** The messages of a request, without its instructions. */
function messagesOf(input: unknown): readonly Fields[] | null {
  if (typeof input === "string" && input !== "") return [{ role: "user", content: input }];
  const list = ofList(input) ?? ofMessage(input);
  if (list !== null) return list;
  if (!isRecord(input)) return null;
  for (const key of LISTS) {
    const found = messagesOf(input[key]);
    if (found !== null) return found;
  }
  return null;
}

/** The instructions that stand beside the messages, as a message. */
function systemOf(...places: readonly Fields[]): readonly Fields[] {
  for (const place of places) {
    for (const key of SYSTEMS) {
      const given = place[key];
      const content = contentOf(isRecord(given) ? given["parts"] : given);
      if (content !== "") return [{ role: "system", content }];
    }
  }
  return [];
}

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});

export interface Replay extends Named {
  readonly model: string;
  /** The input that the prompt was built with; null if it was written out. */
  readonly input: unknown;
}

/** Makes a prompt of a span's row; null if it has no conversation in it. */
export function replayOf(row: Fields): Replay | null {
  const input = row["input"];
  const metadata = fieldsOf(row["metadata"]);
  const messages = messagesOf(input);
  if (messages === null) return null;
  const request = fieldsOf(input);
  const places = [request, fieldsOf(request["config"]), metadata, fieldsOf(metadata["config"])];
  const all = messages.some(({ role }) => role === "system") ? messages : [...systemOf(...places), ...messages];
  const tools = toolsOf(places.map((place) => place["tools"]));
  const model = textIn(metadata, "model", "ai.model.id") || textIn(request, "model");
  const name = textIn(fieldsOf(row["span_attributes"]), "name");
  const prompt = { type: "chat", messages: all, ...(tools.length === 0 ? {} : { tools: JSON.stringify(tools) }) };
  // What was sent is no template, even where it has braces.
  const format = JSON.stringify(all).includes("{{") ? { template_format: "none" } : {};
  const variables = fieldsOf(metadata["prompt"])["variables"];
  return {
    name: name === "" ? "Replay" : name,
    data: { prompt, options: { model, params: parametersOf(...places) }, ...format },
    source: null,
    model,
    input: fieldsOf(variables)["input"] ?? null,
  };
}
