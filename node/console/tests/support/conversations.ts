// One conversation as six ways to call a model record it: a picture, a tool that was called, and an answer.

/** A picture of 12 by 8 pixels in one blue. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAwAAAAICAMAAAD6Ou7DAAAABlBMVEX///8fX9YQKwFJAAAAD0lEQVR42mNgRAIMtOMAABPoAGEhUwLLAAAAAElFTkSuQmCC";

export const PICTURE_WIDTH = 12;

const SYSTEM = "You tell people whether they need an umbrella.";
const QUESTION = "Will it rain where this was taken?";
const ANSWER = "Yes. Oslo has heavy rain at 7 °C.";

export const TOOL = "get_weather";
const ARGUMENTS = { city: "Oslo", unit: "celsius" };
const WEATHER = { sky: "heavy rain", degrees: 7 };

/** Texts that each form has to show: the conversation in its order, and what the tool got and returned. */
export const SAID = { system: SYSTEM, question: QUESTION, answer: ANSWER, city: ARGUMENTS.city, sky: WEATHER.sky };

export interface Recorded {
  readonly name: string;
  readonly input: unknown;
  readonly output: unknown;
}

const dataUrl = `data:image/png;base64,${PICTURE}`;
const called = JSON.stringify(ARGUMENTS);
const returned = JSON.stringify(WEATHER);

const openAiChat: Recorded = {
  name: "openai.chat",
  input: {
    model: "gpt-4o",
    messages: [
      { role: "system", content: SYSTEM },
      { role: "user", content: [{ type: "text", text: QUESTION }, { type: "image_url", image_url: { url: dataUrl } }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_1", type: "function", function: { name: TOOL, arguments: called } }],
      },
      { role: "tool", tool_call_id: "call_1", content: returned },
    ],
  },
  output: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: ANSWER } }],
};

const openAiResponses: Recorded = {
  name: "openai.responses",
  input: {
    model: "gpt-5",
    instructions: SYSTEM,
    input: [
      { role: "user", content: [{ type: "input_text", text: QUESTION }, { type: "input_image", image_url: dataUrl }] },
      { type: "function_call", id: "fc_1", call_id: "call_1", name: TOOL, arguments: called },
      { type: "function_call_output", call_id: "call_1", output: returned },
    ],
  },
  output: {
    object: "response",
    output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: ANSWER, annotations: [] }] }],
  },
};

const anthropic: Recorded = {
  name: "anthropic.messages.create",
  input: {
    model: "claude-sonnet-4",
    system: SYSTEM,
    messages: [
      {
        role: "user",
        content: [
          { type: "image", source: { type: "base64", media_type: "image/png", data: PICTURE } },
          { type: "text", text: QUESTION },
        ],
      },
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: TOOL, input: ARGUMENTS }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: returned }] }] },
    ],
  },
  output: { role: "assistant", stop_reason: "end_turn", content: [{ type: "text", text: ANSWER }] },
};

const gemini: Recorded = {
  name: "gemini.generateContent",
  input: {
    model: "gemini-2.5-pro",
    systemInstruction: { parts: [{ text: SYSTEM }] },
    contents: [
      { role: "user", parts: [{ text: QUESTION }, { inlineData: { mimeType: "image/png", data: PICTURE } }] },
      { role: "model", parts: [{ functionCall: { name: TOOL, args: ARGUMENTS } }] },
      { role: "user", parts: [{ functionResponse: { name: TOOL, response: WEATHER } }] },
    ],
  },
  output: { candidates: [{ finishReason: "STOP", content: { role: "model", parts: [{ text: ANSWER }] } }] },
};

/** A message as LangChain writes its objects. */
const ofLangChain = (kind: string, kwargs: Readonly<Record<string, unknown>>): unknown => ({
  lc: 1,
  type: "constructor",
  id: ["langchain", "schema", "messages", kind],
  kwargs,
});

const langChain: Recorded = {
  name: "langchain.ChatOpenAI",
  input: {
    messages: [
      [
        ofLangChain("SystemMessage", { content: SYSTEM }),
        ofLangChain("HumanMessage", {
          content: [{ type: "text", text: QUESTION }, { type: "image_url", image_url: { url: dataUrl } }],
        }),
        ofLangChain("AIMessage", { content: "", tool_calls: [{ id: "call_1", name: TOOL, args: ARGUMENTS, type: "tool_call" }] }),
        ofLangChain("ToolMessage", { content: returned, tool_call_id: "call_1", name: TOOL, status: "success" }),
      ],
    ],
  },
  output: { generations: [[{ text: ANSWER, message: ofLangChain("AIMessage", { content: ANSWER }) }]] },
};

/** The forms that come by `insert`. */
export const RECORDED: readonly Recorded[] = [openAiChat, openAiResponses, anthropic, gemini, langChain];

/** The name of the span that comes by OTLP. */
export const TELEMETRY_NAME = "chat gpt-4o";

/** The attributes of the conventions for generative AI. */
const ATTRIBUTES: Readonly<Record<string, string>> = {
  "gen_ai.operation.name": "chat",
  "gen_ai.request.model": "gpt-4o",
  "gen_ai.system_instructions": JSON.stringify([{ type: "text", content: SYSTEM }]),
  "gen_ai.input.messages": JSON.stringify([
    {
      role: "user",
      parts: [
        { type: "text", content: QUESTION },
        { type: "blob", modality: "image", mime_type: "image/png", content: PICTURE },
      ],
    },
    { role: "assistant", parts: [{ type: "tool_call", id: "call_1", name: TOOL, arguments: ARGUMENTS }] },
    { role: "tool", parts: [{ type: "tool_call_response", id: "call_1", response: WEATHER }] },
  ]),
  "gen_ai.output.messages": JSON.stringify([
    { role: "assistant", parts: [{ type: "text", content: ANSWER }], finish_reason: "stop" },
  ]),
};

/** A request of OTLP in JSON with one span. */
export const telemetry = (traceId: string, at: number): unknown => ({
  resourceSpans: [
    {
      scopeSpans: [
        {
          spans: [
            {
              traceId,
              spanId: traceId.slice(0, 16),
              name: TELEMETRY_NAME,
              startTimeUnixNano: `${at}000000`,
              endTimeUnixNano: `${at + 840}000000`,
              attributes: Object.entries(ATTRIBUTES).map(([key, value]) => ({ key, value: { stringValue: value } })),
            },
          ],
        },
      ],
    },
  ],
});
