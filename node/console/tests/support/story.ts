// The project support-bot, which pictures show: half a day of an assistant that answers customers of a shop.
import type { Project } from "../seed";
import type { Api } from "./api";
import { numbers } from "./bulk";
import { makeExperiment } from "./demo";

/** The moment at which the pictures are taken, so late that no time is relative, and the range of time that they show. */
export const NOW = "2026-11-20T17:30:00Z";
export const RANGE = "2026-11-20T10:00Z..2026-11-20T16:00Z";

const BEGIN = Date.parse("2026-11-20T10:00:00Z");
const SPAN_MS = 6 * 3_600_000;
const TRACES = 640;

export const HERO = "b7f2c4e1a9d84f06";

interface Talk {
  readonly topic: string;
  readonly question: string;
  readonly answer: string;
}

const TALKS: readonly Talk[] = [
  { topic: "refund", question: "I was charged twice for order 48213. Can I get one back?", answer: "I found both charges of $64.90 and refunded the second one. It reaches your card in 3 to 5 days." },
  { topic: "delivery", question: "Where is my parcel? It should have been here on Tuesday.", answer: "It is at the depot in Leeds and will be delivered tomorrow between 9:00 and 12:00." },
  { topic: "returns", question: "The jacket is too small. How do I swap it for a medium?", answer: "I reserved a medium for you. Print the label that I sent and drop the parcel at any post office." },
  { topic: "account", question: "I can't log in after changing my phone number", answer: "I sent a link to your email address. It signs you in and lets you set the new number." },
  { topic: "delivery", question: "Can you ship to Norway, and what does it cost?", answer: "Yes. Delivery to Norway takes 4 to 6 days and costs $14.50; above $150 it is free." },
  { topic: "refund", question: "Cancel my order please, I ordered the wrong colour", answer: "Order 48377 is cancelled. Nothing was charged yet." },
  { topic: "product", question: "Is the trail backpack waterproof?", answer: "It is water-repellent. The zips are not sealed, so use the rain cover in heavy rain." },
  { topic: "account", question: "Please delete my account and all data", answer: "I opened the request. You will get a mail to confirm it, and everything is deleted within 30 days." },
  { topic: "payment", question: "Why was my card declined? It works everywhere else", answer: "Your bank asked for a confirmation that did not arrive. Please try again and approve it in your banking app." },
  { topic: "product", question: "What is the difference between the Ridge and the Summit tent?", answer: "The Summit has a second door and weighs 400 g more. Both sleep two people." },
  { topic: "returns", question: "How long do I have to return the boots?", answer: "30 days after delivery, so until 14 December. They must be unworn." },
  { topic: "payment", question: "Can I pay the invoice in two parts?", answer: "Yes, from $100. Choose \"Pay in parts\" at the checkout; there is no interest." },
  { topic: "delivery", question: "Wrong address on order 48402!! can you change it", answer: "Changed to 12 Mill Lane, York. The parcel had not left the warehouse." },
  { topic: "product", question: "Do you restock the green merino shirt in L?", answer: "Yes, on 2 December. I can send you a mail when it is there." },
];

const MODELS = ["gpt-4o", "claude-sonnet-4", "gpt-4o-mini"] as const;
/** Dollars for a million tokens, in and out. */
const PRICES = { "gpt-4o": [2.5, 10], "claude-sonnet-4": [3, 15], "gpt-4o-mini": [0.15, 0.6] } as const;

type Model = (typeof MODELS)[number];
type Span = Readonly<Record<string, unknown>>;

const costOf = (model: Model, input: number, output: number): number =>
  Math.round(input * PRICES[model][0] + output * PRICES[model][1]) / 1e6;

const SYSTEM = "You answer customers of Northwind Outdoor. Be short and exact. Look things up instead of guessing, and never promise what a tool did not confirm.";

const hex = (random: () => number, length: number): string =>
  Array.from({ length }, () => Math.floor(random() * 16).toString(16)).join("");

/** More work in the middle of the day, as a share of the range. */
function momentOf(random: () => number): number {
  for (;;) {
    const share = random();
    if (random() < 0.45 + 0.55 * Math.sin(share * Math.PI)) return share;
  }
}

interface Made {
  readonly random: () => number;
  readonly root: string;
  readonly at: number;
}

const span = ({ root, random }: Made, name: string, type: string, from: number, to: number, more: Span = {}): Span => ({
  id: hex(random, 16),
  span_id: hex(random, 16),
  root_span_id: root,
  span_parents: [root],
  created: new Date(from * 1000).toISOString(),
  span_attributes: { name, type },
  ...more,
  metrics: { start: from, end: to, ...(typeof more["metrics"] === "object" ? more["metrics"] : {}) },
});

/** An ordinary trace: a ticket, a search, a call of a model, and its scores. */
function ordinary(made: Made, share: number): readonly Span[] {
  const { random, root, at } = made;
  const talk = TALKS[Math.floor(random() * TALKS.length)] ?? TALKS[0];
  if (talk === undefined) return [];
  const model = MODELS[random() < 0.5 ? 0 : random() < 0.6 ? 1 : 2] ?? "gpt-4o";
  const isOutage = share > 0.58 && share < 0.66;
  const isFailed = random() < (isOutage && talk.topic !== "product" ? 0.45 : 0.02);
  const begin = at / 1000;
  const thinking = begin + 0.05 + random() * 0.3;
  const end = isFailed ? thinking + 30 : thinking + 0.7 + random() * random() * 7;
  const [input, output] = [600 + Math.floor(random() * 1900), 40 + Math.floor(random() * 220)];
  const helpful = Math.round((0.55 + 0.45 * Math.sqrt(random())) * 100) / 100;
  const failure = { error: "TimeoutError: orders-api did not answer within 30 s" };
  const call = span(made, model.startsWith("claude") ? "anthropic.messages" : "openai.chat", "llm", thinking, end, {
    metadata: { model },
    metrics: {
      prompt_tokens: input,
      completion_tokens: output,
      tokens: input + output,
      time_to_first_token: Math.round((0.2 + random() * 0.6) * 1000) / 1000,
      estimated_cost: costOf(model, input, output),
    },
  });
  const children = isFailed ? [span(made, "get_order", "tool", thinking, end, failure)] : [call];
  return [
    {
      ...span(made, "answer_ticket", "task", begin, end, {
        input: { messages: [{ role: "user", content: talk.question }] },
        ...(isFailed ? failure : { output: talk.answer, scores: { Helpful: helpful, Factual: random() < 0.85 ? 1 : 0 } }),
        metadata: { topic: talk.topic, plan: random() < 0.3 ? "business" : "private", model },
        tags: random() < 0.25 ? [talk.topic, "reviewed"] : [talk.topic],
      }),
      id: root,
      span_id: root,
      span_parents: [],
    },
    ...children,
  ];
}

const QUESTION = "I was charged twice for order 48213. Can I get one back?";
const ANSWER =
  "I checked order 48213: there are two charges of $64.90 from 18 November.\n\n- The second one was a retry of ours, so I refunded it.\n- It reaches your card in 3 to 5 days.\n\nYou will get a receipt by mail. Is there anything else?";

const PLAN = "You decide which tool to call next for a customer of Northwind Outdoor. Answer with one call.";

/** The messages of the hero's last call, with its tools. */
const HERO_MESSAGES = [
  { role: "system", content: SYSTEM },
  { role: "user", content: QUESTION },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "call_1", type: "function", function: { name: "list_charges", arguments: '{"order":"48213"}' } }],
  },
  {
    role: "tool",
    tool_call_id: "call_1",
    content: '{"charges":[{"id":"ch_81","amount":64.9,"at":"2026-11-18T09:12:04Z"},{"id":"ch_82","amount":64.9,"at":"2026-11-18T09:12:31Z"}]}',
  },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "call_2", type: "function", function: { name: "refund_charge", arguments: '{"charge":"ch_82","reason":"duplicate"}' } }],
  },
  { role: "tool", tool_call_id: "call_2", content: '{"refund":"re_19","status":"succeeded","days":"3 to 5"}' },
];

/** What the calls before the last one were asked: with a prompt of their own, so that nothing of the last one is folded. */
const planned = (count: number): readonly unknown[] => [{ role: "system", content: PLAN }, ...HERO_MESSAGES.slice(1, count)];

type Step = readonly [id: string, parent: string | null, name: string, type: string, from: number, to: number, more?: Span];

const asked = (model: Model, input: number, output: number, first: number): Span => ({
  metadata: { model, temperature: 0.2 },
  metrics: {
    prompt_tokens: input,
    completion_tokens: output,
    tokens: input + output,
    time_to_first_token: first,
    estimated_cost: costOf(model, input, output),
  },
});

/** The trace that the picture of a trace shows. */
const HERO_STEPS: readonly Step[] = [
  ["h0", null, "answer_ticket", "task", 0, 6.42, {
    input: { messages: [{ role: "user", content: QUESTION }] },
    output: ANSWER,
    scores: { Helpful: 0.96, Factual: 1 },
    metadata: { topic: "refund", plan: "private", model: "gpt-4o" },
    tags: ["refund", "reviewed"],
  }],
  ["h1", "h0", "classify_intent", "llm", 0.02, 0.41, { input: [{ role: "user", content: QUESTION }], output: "refund", ...asked("gpt-4o-mini", 212, 3, 0.31) }],
  ["h2", "h0", "retrieve", "function", 0.43, 1.06, { input: { query: "charged twice refund" }, output: { documents: 4 } }],
  ["h3", "h2", "embed_query", "llm", 0.44, 0.58, { metadata: { model: "text-embedding-3-small" }, metrics: { prompt_tokens: 14, tokens: 14 } }],
  ["h4", "h2", "vector_search", "tool", 0.59, 0.83, { input: { k: 20 }, output: { hits: 20 } }],
  ["h5", "h2", "rerank", "function", 0.84, 1.05, { input: { keep: 4 }, output: ["duplicate-charges", "refund-times", "receipts", "chargebacks"] }],
  ["h6", "h0", "agent", "task", 1.08, 5.71],
  ["h7", "h6", "openai.chat", "llm", 1.09, 2.02, { input: planned(2), output: [HERO_MESSAGES[2]], ...asked("gpt-4o", 1184, 22, 0.62) }],
  ["h8", "h6", "list_charges", "tool", 2.04, 2.51, { input: { order: "48213" }, output: { charges: ["ch_81", "ch_82"] } }],
  ["h9", "h6", "openai.chat", "llm", 2.53, 3.38, { input: planned(4), output: [HERO_MESSAGES[4]], ...asked("gpt-4o", 1302, 27, 0.55) }],
  ["h10", "h6", "refund_charge", "tool", 3.4, 4.22, { input: { charge: "ch_82", reason: "duplicate" }, output: { refund: "re_19", status: "succeeded" } }],
  ["h11", "h6", "openai.chat", "llm", 4.24, 5.7, {
    input: { model: "gpt-4o", messages: HERO_MESSAGES },
    output: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: ANSWER } }],
    scores: { Factual: 1 },
    ...asked("gpt-4o", 1418, 74, 0.48),
  }],
  ["h12", "h0", "send_reply", "tool", 5.72, 5.9, { input: { ticket: "T-9031", channel: "chat" }, output: { sent: true } }],
  ["h13", "h0", "Helpful", "score", 5.92, 6.4, { scores: { Helpful: 0.96 } }],
  ["h14", "h0", "Factual", "score", 5.92, 6.31, { scores: { Factual: 1 } }],
];

function hero(): readonly Span[] {
  const begin = Date.parse("2026-11-20T15:58:41.200Z") / 1000;
  const idOf = (id: string): string => (id === "h0" ? HERO : `${HERO}-${id}`);
  return HERO_STEPS.map(([id, parent, name, type, from, to, more = {}]) => ({
    id: idOf(id),
    span_id: idOf(id),
    root_span_id: HERO,
    span_parents: parent === null ? [] : [idOf(parent)],
    created: new Date((begin + from) * 1000).toISOString(),
    span_attributes: { name, type },
    ...more,
    metrics: { start: begin + from, end: begin + to, ...(typeof more["metrics"] === "object" ? more["metrics"] : {}) },
  }));
}

/** The span of the hero that is selected in its picture. */
export const HERO_SPAN = `${HERO}-h11`;

export const EXPERIMENTS = { before: "main-412", after: "shorter-answers-v7" } as const;

/** An answer with other numbers than the right ones, or one that helps nobody. */
const wrong = (answer: string): string =>
  /\d/.test(answer) ? answer.replaceAll(/\d+/g, (number) => String(Number(number) + 3)) : "I could not find that. Please write to our team.";

/** An evaluation of all talks, some of them worse or better than in another one. */
function evaluated(name: string, seed: number, lift: number): readonly Span[] {
  const random = numbers(seed);
  return Array.from({ length: 84 }, (_, index) => {
    const talk = TALKS[index % TALKS.length] ?? { topic: "", question: "", answer: "" };
    const ticket = 48_200 + index * 7;
    const isWrong = random() < 0.22 - lift;
    const factual = isWrong ? 0 : 1;
    const helpful = Math.round(Math.min(1, 0.5 + lift + 0.45 * Math.sqrt(random()) - (isWrong ? 0.3 : 0)) * 100) / 100;
    const begin = BEGIN / 1000 + index;
    const [input, output] = [900 + Math.floor(random() * 700), Math.floor((lift > 0 ? 40 : 90) + random() * 60)];
    return {
      id: `${name}-${index}`,
      span_id: `${name}-${index}`,
      root_span_id: `${name}-${index}`,
      created: new Date(begin * 1000).toISOString(),
      input: `T-${ticket}: ${talk.question}`,
      expected: talk.answer,
      output: isWrong ? wrong(talk.answer) : lift > 0 ? talk.answer : `Hello! ${talk.answer}`,
      scores: { Factual: factual, Helpful: helpful },
      metadata: { topic: talk.topic },
      span_attributes: { name: "eval", type: "eval" },
      metrics: {
        start: begin,
        end: begin + 0.9 + random() * (lift > 0 ? 1.6 : 2.8),
        prompt_tokens: input,
        completion_tokens: output,
        tokens: input + output,
        estimated_cost: costOf("gpt-4o", input, output),
      },
    };
  });
}

export async function plantStory(api: Api, project: Project): Promise<void> {
  const random = numbers(2026);
  const traces = Array.from({ length: TRACES }, () => {
    const share = momentOf(random);
    return ordinary({ random, root: hex(random, 16), at: BEGIN + Math.floor(share * (SPAN_MS - 300_000)) }, share);
  });
  const inOrder = traces.sort(([one], [other]) => String(one?.["created"]).localeCompare(String(other?.["created"]))).flat();
  await api.insert("project_logs", project.id, [...inOrder, ...hero()]);
  const before = await makeExperiment(api, project, EXPERIMENTS.before);
  const after = await makeExperiment(api, project, EXPERIMENTS.after);
  await api.insert("experiment", before, evaluated(EXPERIMENTS.before, 5, 0));
  await api.insert("experiment", after, evaluated(EXPERIMENTS.after, 6, 0.12));
}
