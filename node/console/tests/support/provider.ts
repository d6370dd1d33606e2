// A provider of models that answers by a script: the name of the model decides how.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { at, listAt, textAt } from "./json";

/** How a model behaves, by a part of its name; every other one answers at once. */
export const FAILING = "failing";
export const SLOW = "slow";
export const JUDGE = "judge";

/** Milliseconds between the pieces of a slow answer. */
const SLOW_MS = 25;

export interface Provider {
  /** The base of its address, as a secret names it. */
  readonly url: string;
  /** The calls in the order in which they came: the model, and what it was asked last. */
  readonly calls: string[];
  /** The calls in the order in which they ended. */
  readonly ended: string[];
  /** How many calls were open at once at most. */
  readonly most: () => number;
  /** How many callers left before the end of their answer. */
  readonly left: () => number;
  readonly close: () => void;
}

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const pieces: Uint8Array[] = [];
  for await (const piece of request) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString("utf8"));
}

const contentOf = (message: unknown): string => {
  const content = at(message, "content");
  return typeof content === "string" ? content : JSON.stringify(content);
};

/** The tokens of a text, as this provider counts them. */
const tokensOf = (text: string): number => text.split(/\s+/).filter((word) => word !== "").length;

/** The text that a model answers: what it was asked last, after its name. */
export const answerOf = (model: string, asked: string): string => `${model} says: ${asked}`;

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** A choice of the first answer that a judge is offered. */
function verdictOf(body: unknown): unknown {
  const properties = at(body, "tools", 0, "function", "parameters", "properties");
  const choice = textAt(properties, "choice", "enum", 0);
  const call = { id: "call-1", type: "function", function: { name: "select_choice", arguments: JSON.stringify({ reasons: "As told.", choice }) } };
  return { role: "assistant", content: null, tool_calls: [call] };
}

/** Sends an answer word by word. */
async function stream(response: ServerResponse, model: string, text: string, usage: unknown): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const chunk = (choices: readonly unknown[], more = {}): void => {
    const body = { id: "chat-1", object: "chat.completion.chunk", created: 1, model, choices, ...more };
    response.write(`data: ${JSON.stringify(body)}\n\n`);
  };
  for (const [index, word] of text.split(/(?<= )/).entries()) {
    if (model.includes(SLOW)) await pause(SLOW_MS);
    if (response.destroyed) return;
    chunk([{ index: 0, delta: { ...(index === 0 ? { role: "assistant" } : {}), content: word }, finish_reason: null }]);
  }
  chunk([{ index: 0, delta: {}, finish_reason: "stop" }]);
  chunk([], { usage });
  response.end("data: [DONE]\n\n");
}

async function answer(request: IncomingMessage, response: ServerResponse, calls: string[], ended: string[]): Promise<void> {
  const body = await bodyOf(request);
  const model = textAt(body, "model");
  const messages = listAt(body, "messages");
  const asked = contentOf(messages.at(-1));
  calls.push(`${model}: ${asked}`);
  response.on("close", () => ended.push(`${model}: ${asked}`));
  if (model.includes(FAILING)) {
    json(response, 400, { error: { message: `the model ${model} is out of order`, type: "invalid_request_error", code: "broken" } });
    return;
  }
  const text = answerOf(model, asked);
  const [prompt, completion] = [tokensOf(messages.map(contentOf).join(" ")), tokensOf(text)];
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  if (at(body, "stream") === true && !model.includes(JUDGE)) {
    await stream(response, model, text, usage);
    return;
  }
  const message = at(body, "tools", 0) === undefined ? { role: "assistant", content: text } : verdictOf(body);
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  json(response, 200, { id: "chat-1", object: "chat.completion", created: 1, model, choices, usage });
}

/** Starts the provider at a free port of this machine. */
export async function startProvider(): Promise<Provider> {
  const [calls, ended]: [string[], string[]] = [[], []];
  let [open, most, left] = [0, 0, 0];
  const server = createServer((request, response) => {
    open += 1;
    most = Math.max(most, open);
    response.on("close", () => {
      open -= 1;
      if (!response.writableFinished) left += 1;
    });
    void answer(request, response, calls, ended).catch((error: unknown) => json(response, 500, { error: { message: String(error) } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("the provider has no port");
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    calls,
    ended,
    most: () => most,
    left: () => left,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
