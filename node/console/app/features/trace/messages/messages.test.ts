// Tests that conversations of each API are recognized, and that other values are left alone.
import { expect, test } from "vitest";
import { messagesOf, sharedStart } from "./messages";

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
])("%s is recognized", (_, value, expected) => {
  expect(shape(value)).toEqual(expected);
});

test.each([null, 1, "Hi", "{", [], {}, [1], { a: 1 }, [{ role: 1 }], { messages: [] }, { messages: [1] }, { choices: [] }])(
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
