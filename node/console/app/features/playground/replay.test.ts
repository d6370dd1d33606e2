// Tests that spans become prompts, whatever API their calls were written for.
import fc from "fast-check";
import { expect, test } from "vitest";
import { replayOf } from "./replay";

test("spans of OpenAI's chat and responses become prompts", () => {
  const tool = { type: "function", function: { name: "find", parameters: { type: "object" } } };
  const chat = replayOf({
    span_attributes: { name: "openai.chat" },
    input: [{ role: "system", content: "Be short" }, { role: "user", content: [{ type: "text", text: "a" }, { type: "image_url", image_url: { url: "data:x" } }] }],
    metadata: { model: "gpt-4o", temperature: 0.2, provider: "openai", tools: [tool], prompt: { variables: { input: "a" } } },
  });
  expect(chat).toMatchObject({ name: "openai.chat", model: "gpt-4o", input: "a", data: { options: { model: "gpt-4o", params: { temperature: 0.2 } } } });
  expect(chat?.data["prompt"]).toMatchObject({ tools: JSON.stringify([tool]), messages: [{ role: "system" }, { role: "user" }] });

  const responses = replayOf({
    input: [
      { type: "message", role: "developer", content: [{ type: "input_text", text: "Be short" }] },
      { type: "function_call", call_id: "c", name: "find", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "[]" },
    ],
    metadata: { model: "gpt-5", instructions: "Use {{tools}}", max_output_tokens: 9, reasoning: { effort: "low" }, tools: [{ type: "function", name: "find", parameters: {} }] },
  });
  expect(responses?.data).toMatchObject({ template_format: "none", options: { params: { max_tokens: 9, reasoning_effort: "low" } } });
  expect(responses?.data["prompt"]).toMatchObject({
    messages: [
      { role: "system", content: "Use {{tools}}" },
      { role: "developer", content: "Be short" },
      { role: "assistant", tool_calls: [{ id: "c", function: { name: "find", arguments: "{}" } }] },
      { role: "tool", tool_call_id: "c", content: "[]" },
    ],
  });
});

test("spans of Anthropic and Gemini become prompts, and others none", () => {
  const anthropic = replayOf({
    input: {
      system: "Be short",
      messages: [
        { role: "assistant", content: [{ type: "thinking", thinking: "hm" }, { type: "tool_use", id: "t", name: "find", input: { q: 1 } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "none" }] }] },
      ],
      tools: [{ name: "find", description: "Finds", input_schema: { type: "object" } }],
    },
    metadata: { model: "claude", stop_sequences: ["x"], tool_choice: { type: "any" } },
  });
  expect(anthropic?.data).toMatchObject({ options: { params: { stop: ["x"], tool_choice: "required" } } });
  expect(anthropic?.data["prompt"]).toMatchObject({
    messages: [
      { role: "system", content: "Be short" },
      { role: "assistant", content: "", tool_calls: [{ id: "t", function: { name: "find", arguments: '{"q":1}' } }] },
      { role: "tool", tool_call_id: "t", content: "none" },
    ],
  });
  const gemini = replayOf({
    input: {
      contents: [{ role: "user", parts: [{ text: "a" }] }, { role: "model", parts: [{ functionCall: { name: "find", args: {} } }] }],
      config: { systemInstruction: { parts: [{ text: "Be short" }] }, topP: 0.5, tools: [{ functionDeclarations: [{ name: "find" }] }] },
    },
    metadata: { model: "gemini" },
  });
  expect(gemini?.data).toMatchObject({ options: { params: { top_p: 0.5 } } });
  expect(gemini?.data["prompt"]).toMatchObject({ messages: [{ content: "Be short" }, { content: "a" }, { role: "assistant" }] });
  expect(replayOf({ input: { question: 1 } })).toBeNull();
  expect(replayOf({ input: "Say hi", metadata: {} })?.data["prompt"]).toMatchObject({ messages: [{ role: "user", content: "Say hi" }] });
  fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), (input, metadata) => void replayOf({ input, metadata })));
});
