// Asks a model through the official SDKs of its providers and through the AI SDK, and prints what each read as one JSON
// object.
//
// Usage: model_clients.mjs ORIGIN KEY MODEL[,MODEL...] [CLIENT...]. ORIGIN is a scripted provider or a gateway before
// one; the values have to be the same.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { embedMany, generateObject, generateText, jsonSchema, streamText, tool } from "ai";
import { wrapOpenAI } from "braintrust";
import OpenAI from "openai";

const [ORIGIN, KEY, MODELS, ...WANTED] = process.argv.slice(2);
let MODEL;
globalThis.AI_SDK_LOG_WARNINGS = false;
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const CITY = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const TOOLS = [
  ["get_weather", "The weather of a city"],
  ["get_time", "The time in a city"],
];
const RESULTS = ["rain", "noon"];
const SCHEMA = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
  additionalProperties: false,
};
const SAID = "hello wide world";
const ASKED = "weather and time?";
const SHOWN = "what is it?";
const NOTHING = { type: "object", properties: {} };
const STATUSES = [400, 404, 429, 500, 503];

/** Kind and status of the error that each of some statuses is for the caller. */
async function failures(call) {
  const found = [];
  for (const status of STATUSES) {
    try {
      await call(`fail ${status}`);
      found.push("no error");
    } catch (error) {
      found.push([error.constructor.name, error.status ?? error.statusCode]);
    }
  }
  return found;
}

const openaiClient = () => new OpenAI({ baseURL: `${ORIGIN}/v1`, apiKey: KEY, maxRetries: 0 });

async function chat(client) {
  const create = (messages, more = {}) => client.chat.completions.create({ model: MODEL, messages, ...more });
  const tools = TOOLS.map(([name, description]) => ({
    type: "function",
    function: { name, description, parameters: CITY },
  }));
  const calls = (message) => (message.tool_calls ?? []).map((c) => [c.function.name, JSON.parse(c.function.arguments)]);
  const read = ({ choices: [{ message, finish_reason }], usage }) => ({
    text: message.content ?? "",
    calls: calls(message),
    finish: finish_reason,
    usage: [usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details?.cached_tokens ?? 0],
  });

  const plain = [
    { role: "system", content: "be brief" },
    { role: "user", content: SAID },
  ];
  const found = { plain: read(await create(plain)) };
  found.stream = { text: "" };
  for await (const chunk of await create(plain, { stream: true, stream_options: { include_usage: true } })) {
    found.stream.text += chunk.choices[0]?.delta.content ?? "";
    found.stream.finish = chunk.choices[0]?.finish_reason ?? found.stream.finish;
    if (chunk.usage) found.stream.usage = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens];
  }
  const asked = [{ role: "user", content: ASKED }];
  const first = await create(asked, { tools });
  found.tools = read(first);
  const streamed = client.chat.completions.stream({ model: MODEL, messages: asked, tools });
  found.streamed_tools = calls((await streamed.finalChatCompletion()).choices[0].message);
  const bare = [{ type: "function", function: { name: "ping", parameters: NOTHING } }];
  const pinged = client.chat.completions.stream({ model: MODEL, messages: asked, tools: bare });
  found.bare_tool = calls((await pinged.finalChatCompletion()).choices[0].message);
  const answered = first.choices[0].message;
  const results = answered.tool_calls.map((call, at) => ({
    role: "tool",
    tool_call_id: call.id,
    content: RESULTS[at],
  }));
  found.results = read(await create([...asked, answered, ...results], { tools }));
  const tool_choice = { type: "function", function: { name: "get_time" } };
  found.forced = read(await create(asked, { tools, tool_choice }));
  const image_url = { url: `data:image/png;base64,${PNG}` };
  const parts = [
    { type: "text", text: SHOWN },
    { type: "image_url", image_url },
  ];
  found.image = read(await create([{ role: "user", content: parts }]));
  const response_format = { type: "json_schema", json_schema: { name: "person", schema: SCHEMA, strict: true } };
  found.schema = JSON.parse(read(await create(asked, { response_format })).text);
  found.errors = await failures((content) => create([{ role: "user", content }]));
  found.streamed_errors = await failures((content) => create([{ role: "user", content }], { stream: true }));
  return found;
}

async function embeddings() {
  const client = openaiClient();
  // without `encoding_format` this SDK asks for base64 and decodes it
  const made = await client.embeddings.create({ model: MODEL, input: ["a cab", "beef"], encoding_format: "float" });
  return { vectors: made.data.map((one) => one.embedding), usage: made.usage.prompt_tokens };
}

async function responses() {
  const client = openaiClient();
  const create = (input, more = {}) => client.responses.create({ model: MODEL, input, ...more });
  const tools = TOOLS.map(([name, description]) => ({
    type: "function",
    name,
    description,
    parameters: CITY,
    strict: false,
  }));
  const called = (response) => response.output.filter((item) => item.type === "function_call");
  const read = (response) => ({
    text: response.output_text,
    calls: called(response).map((item) => [item.name, JSON.parse(item.arguments)]),
    finish: response.status,
    usage: [
      response.usage.input_tokens,
      response.usage.output_tokens,
      response.usage.input_tokens_details.cached_tokens,
    ],
  });

  const instructions = "be brief";
  const found = { plain: read(await create(SAID, { instructions })) };
  const stream = client.responses.stream({ model: MODEL, instructions, input: SAID });
  let text = "";
  for await (const event of stream) if (event.type === "response.output_text.delta") text += event.delta;
  found.stream = { text, final: read(await stream.finalResponse()) };
  const asked = [{ role: "user", content: ASKED }];
  const first = await create(asked, { tools });
  found.tools = read(first);
  const streamed = client.responses.stream({ model: MODEL, input: asked, tools });
  found.streamed_tools = read(await streamed.finalResponse()).calls;
  const bare = [{ type: "function", name: "ping", parameters: NOTHING, strict: false }];
  const pinged = client.responses.stream({ model: MODEL, input: asked, tools: bare });
  found.bare_tool = read(await pinged.finalResponse()).calls;
  const outputs = called(first).map((call, at) => ({
    type: "function_call_output",
    call_id: call.call_id,
    output: RESULTS[at],
  }));
  found.results = read(await create([...asked, ...called(first), ...outputs], { tools }));
  found.forced = read(await create(asked, { tools, tool_choice: { type: "function", name: "get_time" } }));
  const parts = [
    { type: "input_text", text: SHOWN },
    { type: "input_image", image_url: `data:image/png;base64,${PNG}`, detail: "auto" },
  ];
  found.image = read(await create([{ role: "user", content: parts }]));
  const format = { type: "json_schema", name: "person", schema: SCHEMA, strict: true };
  found.schema = JSON.parse((await create(asked, { text: { format } })).output_text);
  found.errors = await failures(create);
  found.streamed_errors = await failures((input) => create(input, { stream: true }));
  return found;
}

async function messages() {
  const client = new Anthropic({ baseURL: ORIGIN, apiKey: KEY, maxRetries: 0 });
  const body = (messages, more) => ({ model: MODEL, max_tokens: 500, messages, ...more });
  const create = (messages, more = {}) => client.messages.create(body(messages, more));
  const tools = TOOLS.map(([name, description]) => ({ name, description, input_schema: CITY }));
  const uses = (message) => message.content.filter((block) => block.type === "tool_use");
  const read = (message) => ({
    text: message.content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    calls: uses(message).map((use) => [use.name, use.input]),
    finish: message.stop_reason,
    usage: [message.usage.input_tokens, message.usage.output_tokens, message.usage.cache_read_input_tokens ?? 0],
  });

  const plain = [{ role: "user", content: SAID }];
  const found = { plain: read(await create(plain, { system: "be brief" })) };
  const stream = client.messages.stream(body(plain, { system: "be brief" }));
  let text = "";
  stream.on("text", (piece) => (text += piece));
  found.stream = { final: read(await stream.finalMessage()), text };
  const asked = [{ role: "user", content: ASKED }];
  const first = await create(asked, { tools });
  found.tools = read(first);
  found.streamed_tools = read(await client.messages.stream(body(asked, { tools })).finalMessage()).calls;
  const bare = [{ name: "ping", input_schema: NOTHING }];
  found.bare_tool = read(await client.messages.stream(body(asked, { tools: bare })).finalMessage()).calls;
  const results = uses(first).map((use, at) => ({ type: "tool_result", tool_use_id: use.id, content: RESULTS[at] }));
  const history = [...asked, { role: "assistant", content: uses(first) }, { role: "user", content: results }];
  found.results = read(await create(history, { tools }));
  found.forced = read(await create(asked, { tools, tool_choice: { type: "tool", name: "get_time" } }));
  const source = { type: "base64", media_type: "image/png", data: PNG };
  const parts = [
    { type: "text", text: SHOWN },
    { type: "image", source },
  ];
  found.image = read(await create([{ role: "user", content: parts }]));
  const output_config = { format: { type: "json_schema", schema: SCHEMA } };
  found.schema = JSON.parse(read(await create(asked, { output_config })).text);
  found.errors = await failures((content) => create([{ role: "user", content }]));
  found.streamed_errors = await failures((content) => create([{ role: "user", content }], { stream: true }));
  return found;
}

/** The AI SDK with a model of one of its providers. */
async function aiSdk(model) {
  const tools = Object.fromEntries(
    TOOLS.map(([name, description]) => [name, tool({ description, inputSchema: jsonSchema(CITY) })]),
  );
  const call = (more) => generateText({ model, maxRetries: 0, ...more });
  const numbers = (usage) => [
    usage.inputTokens,
    usage.outputTokens,
    usage.inputTokenDetails?.cacheReadTokens ?? usage.cachedInputTokens ?? 0,
  ];
  const calls = (made) => made.map(({ toolName, input }) => [toolName, input]);
  const read = (result) => ({
    text: result.text,
    calls: calls(result.toolCalls),
    finish: result.finishReason,
    usage: numbers(result.usage),
  });

  const plain = { system: "be brief", prompt: SAID };
  const found = { plain: read(await call(plain)) };
  const stream = streamText({ model, maxRetries: 0, ...plain });
  let text = "";
  for await (const piece of stream.textStream) text += piece;
  found.stream = { text, finish: await stream.finishReason, usage: numbers(await stream.usage) };
  const asked = [{ role: "user", content: ASKED }];
  const first = await call({ messages: asked, tools });
  found.tools = read(first);
  const bare = { ping: tool({ inputSchema: jsonSchema(NOTHING) }) };
  for (const [scenario, offered] of Object.entries({ streamed_tools: tools, bare_tool: bare })) {
    const streamed = streamText({ model, maxRetries: 0, messages: asked, tools: offered });
    await streamed.consumeStream();
    found[scenario] = calls(await streamed.toolCalls);
  }
  const content = first.toolCalls.map(({ toolCallId, toolName }, at) => ({
    type: "tool-result",
    toolCallId,
    toolName,
    output: { type: "text", value: RESULTS[at] },
  }));
  const history = [...asked, ...first.response.messages, { role: "tool", content }];
  found.results = read(await call({ messages: history, tools }));
  found.forced = read(await call({ messages: asked, tools, toolChoice: { type: "tool", toolName: "get_time" } }));
  const parts = [
    { type: "text", text: SHOWN },
    { type: "image", image: PNG, mediaType: "image/png" },
  ];
  found.image = read(await call({ messages: [{ role: "user", content: parts }] }));
  found.schema = (await generateObject({ model, maxRetries: 0, schema: jsonSchema(SCHEMA), messages: asked })).object;
  found.errors = await failures((prompt) => call({ prompt }));
  found.streamed_errors = await failures(async (prompt) => {
    const onError = () => {};
    for await (const part of streamText({ model, maxRetries: 0, prompt, onError }).fullStream) {
      if (part.type === "error") throw part.error;
    }
  });
  return found;
}

const openai = createOpenAI({ baseURL: `${ORIGIN}/v1`, apiKey: KEY });
const anthropic = createAnthropic({ baseURL: `${ORIGIN}/v1`, apiKey: KEY });
const CLIENTS = {
  openai_js_chat: () => chat(openaiClient()),
  braintrust_js: () => chat(wrapOpenAI(openaiClient())),
  openai_js_embeddings: embeddings,
  openai_js_responses: responses,
  anthropic_js: messages,
  ai_sdk_chat: () => aiSdk(openai.chat(MODEL)),
  ai_sdk_responses: () => aiSdk(openai.responses(MODEL)),
  ai_sdk_anthropic: () => aiSdk(anthropic(MODEL)),
  ai_sdk_embeddings: async () => {
    const made = await embedMany({ model: openai.embedding(MODEL), values: ["a cab", "beef"], maxRetries: 0 });
    return { vectors: made.embeddings, usage: made.usage.tokens };
  },
};

/** What a client reads, or how it fails. */
const asked = (client) => client().catch((error) => ({ failed: error.stack }));

const found = {};
for (MODEL of MODELS.split(",")) {
  found[MODEL] = {};
  for (const name of WANTED.length ? WANTED : Object.keys(CLIENTS)) found[MODEL][name] = await asked(CLIENTS[name]);
}
console.log(JSON.stringify(found, null, 1));
