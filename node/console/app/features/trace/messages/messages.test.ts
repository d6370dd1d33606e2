// Tests that conversations of each API are recognized, and that other values are left alone.
import fc from "fast-check";
import { expect, test } from "vitest";
import { messagesOf, sharedStart, withResults } from "./messages";

const shape = (value: unknown): unknown =>
  messagesOf(value)?.map(({ role, parts }) => [role, ...parts.map((part) => ("text" in part ? `${part.kind}:${part.text}` : part.kind))]) ?? null;

const SYSTEM = { role: "system", content: "Be brief." };

test.each([
  ["OpenAI chat", [SYSTEM, { role: "user", content: [{ type: "text", text: "Hi" }, { type: "image_url", image_url: { url: "data:image/png;base64,AA" } }] }], [["system", "text:Be brief."], ["user", "text:Hi", "image"]]],
  ["calls of tools", [{ role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{\"a\":1}" } }] }, { role: "tool", tool_call_id: "c", content: "[1]" }], [["assistant", "call"], ["tool", "result"]]],
  ["an answer of OpenAI", { choices: [{ index: 0, message: { role: "assistant", content: "Yes", reasoning_content: "Hm" } }] }, [["assistant", "reasoning:Hm", "text:Yes"]]],
  ["choices alone", [{ message: { role: "assistant", content: "Yes" } }], [["assistant", "text:Yes"]]],
  ["responses", { output: [{ type: "reasoning", summary: [{ type: "summary_text", text: "Hm" }] }, { type: "message", role: "assistant", content: [{ type: "output_text", text: "Yes" }] }, { type: "function_call", call_id: "c", name: "f", arguments: "{}" }] }, [["assistant", "reasoning:Hm"], ["assistant", "text:Yes"], ["assistant", "call"]]],
  ["a request to responses", { instructions: "Be brief.", input: [{ role: "user", content: [{ type: "input_text", text: "Hi" }] }] }, [["system", "text:Be brief."], ["user", "text:Hi"]]],
  ["Anthropic", { system: "Be brief.", messages: [{ role: "user", content: "Hi" }, { role: "assistant", content: [{ type: "thinking", thinking: "Hm" }, { type: "tool_use", id: "c", name: "f", input: {} }] }, { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "1" }] }] }, [["system", "text:Be brief."], ["user", "text:Hi"], ["assistant", "reasoning:Hm", "call"], ["user", "result"]]],
  ["an answer of Anthropic", { role: "assistant", content: [{ type: "text", text: "Yes" }] }, [["assistant", "text:Yes"]]],
  ["Gemini", { systemInstruction: { parts: [{ text: "Be brief." }] }, contents: [{ role: "user", parts: [{ text: "Hi" }, { inlineData: { mimeType: "image/png", data: "AA" } }] }] }, [["system", "text:Be brief."], ["user", "text:Hi", "image"]]],
  ["an answer of Gemini", { candidates: [{ content: { role: "model", parts: [{ text: "Hm", thought: true }, { functionCall: { name: "f", args: {} } }] } }] }, [["assistant", "reasoning:Hm", "call"]]],
  ["Bedrock", { messages: [{ role: "user", content: [{ text: "Hi" }] }] }, [["user", "text:Hi"]]],
  ["an answer of Bedrock", { output: { message: { role: "assistant", content: [{ toolUse: { toolUseId: "c", name: "f", input: {} } }] } } }, [["assistant", "call"]]],
  ["LangChain", { messages: [[{ lc: 1, type: "constructor", id: ["langchain", "HumanMessage"], kwargs: { content: "Hi" } }]] }, [["user", "text:Hi"]]],
  ["generations of LangChain", { generations: [[{ text: "Yes" }]] }, [["assistant", "text:Yes"]]],
  ["the AI SDK", [{ role: "user", content: [{ type: "text", text: "Hi" }] }, { role: "assistant", content: [{ type: "tool-call", toolCallId: "c", toolName: "f", input: {} }] }, { role: "tool", content: [{ type: "tool-result", toolCallId: "c", output: 1 }] }], [["user", "text:Hi"], ["assistant", "call"], ["tool", "result"]]],
  ["OpenTelemetry", { "gen_ai.input.messages": JSON.stringify([{ role: "user", parts: [{ type: "text", content: "Hi" }] }]) }, [["user", "text:Hi"]]],
  ["JSON in a text", JSON.stringify([SYSTEM]), [["system", "text:Be brief."]]],
  ["a text for responses", { model: "gpt-5", instructions: "Be brief.", input: "Hi" }, [["system", "text:Be brief."], ["user", "text:Hi"]]],
  ["own tools of responses", { output: [{ type: "web_search_call", id: "w", action: { query: "q" } }, { type: "image_generation_call", id: "i", result: "AA" }] }, [["assistant", "call"], ["assistant", "image"]]],
  ["audio of OpenAI", { choices: [{ message: { role: "assistant", content: null, audio: { data: "AA", transcript: "Yes" } } }] }, [["assistant", "text:Yes", "audio"]]],
  ["a refusal", { choices: [{ message: { role: "assistant", content: null, refusal: "No" } }] }, [["assistant", "refusal"].map((kind) => (kind === "refusal" ? "refusal:No" : kind))]],
  ["a document of Anthropic", { messages: [{ role: "user", content: [{ type: "document", source: { type: "base64", media_type: "application/pdf", data: "AA" } }, { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } }] }] }, [["user", "file", "image"]]],
  ["Gemini with snake case", { contents: [{ role: "model", parts: [{ function_call: { name: "f", args: {} } }] }, { role: "user", parts: [{ function_response: { name: "f", response: { a: 1 } } }] }], config: { system_instruction: "Be brief." } }, [["system", "text:Be brief."], ["assistant", "call"], ["user", "result"]]],
  ["a text for Gemini", { model: "gemini", contents: "Hi" }, [["user", "text:Hi"]]],
  ["a conversation of Bedrock", { system: [{ text: "Be brief." }], messages: [{ role: "user", content: [{ text: "Hi" }, { image: { format: "png", source: { bytes: "AA" } } }, { document: { format: "pdf", name: "a", source: { bytes: "AA" } } }, { cachePoint: { type: "default" } }] }, { role: "assistant", content: [{ reasoningContent: { reasoningText: { text: "Hm" } } }, { toolUse: { toolUseId: "c", name: "f", input: {} } }] }, { role: "user", content: [{ toolResult: { toolUseId: "c", content: [{ json: { a: 1 } }] } }] }] }, [["system", "text:Be brief."], ["user", "text:Hi", "image", "file"], ["assistant", "reasoning:Hm", "call"], ["user", "result"]]],
  ["calls of LangChain", { messages: [{ type: "ai", data: { content: "", tool_calls: [{ id: "c", name: "f", args: {} }] } }, { type: "tool", data: { content: "1", tool_call_id: "c" } }] }, [["assistant", "call"], ["tool", "result"]]],
  ["pairs of LangChain", [["system", "Be brief."], ["human", "Hi"]], [["system", "text:Be brief."], ["user", "text:Hi"]]],
  ["messages of generations", { generations: [[{ text: "Yes", message: { lc: 1, type: "constructor", id: ["langchain", "AIMessage"], kwargs: { content: "Yes" } } }]] }, [["assistant", "text:Yes"]]],
  ["an answer of the AI SDK", { text: "Yes", finishReason: "stop", reasoningText: "Hm", toolCalls: [{ toolCallId: "c", toolName: "f", input: {} }] }, [["assistant", "reasoning:Hm", "text:Yes", "call"]]],
  ["a chat of the AI SDK", [{ id: "1", role: "assistant", parts: [{ type: "step-start" }, { type: "text", text: "Yes" }, { type: "tool-weather", toolCallId: "c", state: "output-available", input: {}, output: 1 }, { type: "file", mediaType: "image/png", url: "data:image/png;base64,AA" }] }], [["assistant", "text:Yes", "call", "result", "image"]]],
  ["parts of OpenTelemetry", { "gen_ai.system_instructions": [{ type: "text", content: "Be brief." }], "gen_ai.input.messages": [{ role: "user", parts: [{ type: "text", content: "Hi" }, { type: "blob", modality: "image", mime_type: "image/png", content: "AA" }, { type: "uri", modality: "audio", uri: "x://a" }] }], "gen_ai.output.messages": [{ role: "assistant", parts: [{ type: "reasoning", content: "Hm" }, { type: "tool_call", id: "c", name: "f", arguments: {} }], finish_reason: "tool_call" }, { role: "tool", parts: [{ type: "tool_call_response", id: "c", response: 1 }] }] }, [["system", "text:Be brief."], ["user", "text:Hi", "image", "audio"], ["assistant", "reasoning:Hm", "call"], ["tool", "result"]]],
  ["events of OpenTelemetry", [{ name: "gen_ai.user.message", body: { content: "Hi" } }, { name: "gen_ai.choice", body: { index: 0, message: { role: "assistant", content: "Yes" } } }], [["user", "text:Hi"], ["assistant", "text:Yes"]]],
  ["attributes with indexes", { "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi", "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Yes" }, [["user", "text:Hi"], ["assistant", "text:Yes"]]],
  ["OpenInference", { "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi", "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Yes" }, [["user", "text:Hi"], ["assistant", "text:Yes"]]],
  ["an attachment", [{ role: "user", content: [{ type: "image_url", image_url: { url: { type: "braintrust_attachment", key: "k", filename: "a.png", content_type: "image/png" } } }] }], [["user", "image"]]],
  ["unknown parts", [{ role: "user", content: [{ type: "hologram", x: 1 }] }], [["user", "other"]]],
])("%s is recognized", (_, value, expected) => {
  expect(shape(value)).toEqual(expected);
});

test.each([null, 1, "Hi", "{", [], {}, [1], { a: 1 }, { role: "admin", content: "x" }, { type: "phone_call" }, { input: "Hi" }, [["a", "b"]], { text: "a" }, [{ role: 1 }], { messages: [] }, { messages: [1] }, { choices: [] }])(
  "%j is no conversation",
  (value) => {
    expect(messagesOf(value)).toBeNull();
  },
);

test("a conversation that goes on shares its start", () => {
  const before = messagesOf([SYSTEM, { role: "user", content: "Hi" }]) ?? [];
  const after = messagesOf([SYSTEM, { role: "user", content: "Hi" }, { role: "assistant", content: "Yes" }]) ?? [];
  expect(sharedStart(before, after)).toBe(2);
  expect(sharedStart(after, before)).toBe(2);
});

const call = (id: string) => ({ role: "assistant", content: null, tool_calls: [{ id, function: { name: "f", arguments: "{}" } }] });
const returned = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content });

test("a call has the result of its own identity, and its message is gone", () => {
  const { messages, resultOf } = withResults(messagesOf([call("a"), call("b"), returned("b", "two"), returned("a", "one"), returned("x", "lost")]) ?? []);
  expect(messages.map(({ role }) => role)).toEqual(["assistant", "assistant", "tool"]);
  const outputs = messages.flatMap(({ parts }) => parts).map((part) => resultOf.get(part)?.output);
  expect(outputs).toEqual(["one", "two", undefined]);
});

test("calls of one name have their results in order", () => {
  const { messages, resultOf } = withResults(messagesOf([call("f"), returned("f", "1st"), call("f"), returned("f", "2nd")]) ?? []);
  expect(messages.flatMap(({ parts }) => parts).map((part) => resultOf.get(part)?.output)).toEqual(["1st", "2nd"]);
});

test("media keep their address, type, name and key", () => {
  const media = (part: unknown) => messagesOf([{ role: "user", content: [part] }])?.[0]?.parts[0];
  expect(media({ type: "input_audio", input_audio: { data: "AA", format: "mp3" } })).toEqual({ kind: "audio", media: { url: "data:audio/mp3;base64,AA", type: "audio/mp3", name: "", key: "" } });
  expect(media({ type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA" })).toEqual({ kind: "file", media: { url: "data:application/pdf;base64,AA", type: "application/pdf", name: "a.pdf", key: "" } });
  expect(media({ type: "braintrust_attachment", key: "k", filename: "a.png", content_type: "image/png" })).toEqual({ kind: "image", media: { url: "", type: "image/png", name: "a.png", key: "k" } });
});

test("any JSON is read without a failure", () => {
  const words = fc.constantFrom("role", "content", "type", "parts", "messages", "text", "tool_calls", "user", "assistant", "image", "output", "gen_ai.prompt.0.role");
  const value = fc.letrec((tie) => ({
    any: fc.oneof({ depthSize: "small" }, words, fc.integer(), fc.constant(null), fc.array(tie("any"), { maxLength: 3 }), fc.dictionary(words, tie("any"), { maxKeys: 4 })),
  })).any;
  fc.assert(fc.property(value, (one) => void messagesOf(one)));
});
