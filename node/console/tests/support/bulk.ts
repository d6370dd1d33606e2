// The projects big and wide: a trace of very many spans, a very deep one, and very many small traces.
import type { Project } from "../seed";
import type { Api } from "./api";
import { makeExperiment } from "./demo";
import type { Environment } from "./env";

const BATCH = 5000;
const DAY = 86_400_000;

/** Numbers that look random and are the same in every run (mulberry32). */
export function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

async function insertAll(api: Api, project: Project, spans: readonly Readonly<Record<string, unknown>>[]): Promise<void> {
  for (let at = 0; at < spans.length; at += BATCH) {
    await api.insert("project_logs", project.id, spans.slice(at, at + BATCH));
  }
}

/** The trace whose spans are 40 deep, with twelve errors and some payloads of a megabyte. */
export function bigTrace(count: number, payloads: number, start: number): readonly Readonly<Record<string, unknown>>[] {
  const random = numbers(7);
  const depth = 40;
  const types = ["task", "llm", "tool", "function"];
  const errorEvery = Math.floor(count / 12);
  const payloadEvery = payloads === 0 ? count + 1 : Math.floor(count / payloads);
  return Array.from({ length: count }, (_, index) => {
    const parent = index === 0 ? null : index <= depth ? index - 1 : Math.floor(random() * index);
    const from = start / 1000 + index * 0.002;
    return {
      id: `big-${index}`,
      span_id: `big-${index}`,
      root_span_id: "big-0",
      ...(parent === null ? {} : { span_parents: [`big-${parent}`] }),
      created: new Date(start + index * 2).toISOString(),
      span_attributes: { name: `step-${index % 97}`, type: types[index % types.length] },
      metrics: { start: from, end: from + 0.001 + random() * 0.5 },
      input: index % payloadEvery === payloadEvery - 1 ? { text: "x".repeat(1 << 20) } : { n: index },
      ...(index % errorEvery === errorEvery - 1 ? { error: `step ${index} failed` } : {}),
    };
  });
}

const deepTrace = (depth: number, start: number): readonly Readonly<Record<string, unknown>>[] =>
  Array.from({ length: depth }, (_, index) => ({
    id: `deep-${index}`,
    span_id: `deep-${index}`,
    root_span_id: "deep-0",
    ...(index === 0 ? {} : { span_parents: [`deep-${index - 1}`] }),
    created: new Date(start + index).toISOString(),
    span_attributes: { name: `level-${index}`, type: "function" },
    metrics: { start: (start + index) / 1000, end: (start + depth * 2 - index) / 1000 },
  }));

/** Ordinary traces of one span, whose errors have a cause: the region `eu-3` with the model `small`. */
const ordinary = (count: number, start: number): readonly Readonly<Record<string, unknown>>[] => {
  const random = numbers(11);
  const pick = (of: readonly string[]): string => of[Math.floor(random() * of.length)] ?? "";
  return Array.from({ length: count }, (_, index) => {
    const region = pick(["us-1", "us-2", "eu-1", "eu-3"]);
    const model = pick(["large", "small"]);
    const isCause = region === "eu-3" && model === "small";
    const at = start + index * 20;
    return {
      id: `o-${index}`,
      span_id: `o-${index}`,
      root_span_id: `o-${index}`,
      created: new Date(at).toISOString(),
      span_attributes: { name: "chat", type: "task" },
      metrics: { start: at / 1000, end: at / 1000 + random() },
      metadata: { region, model, user_id: `u${index % 50}` },
      input: `question ${index}`,
      ...(random() < (isCause ? 0.9 : 0.01) ? { error: "upstream refused" } : { output: `answer ${index}` }),
    };
  });
};

export async function plantBig(api: Api, project: Project, { bigSpans, bigPayloads }: Environment): Promise<void> {
  const now = Date.now();
  await insertAll(api, project, bigTrace(bigSpans, bigPayloads, now - DAY / 4));
  await insertAll(api, project, deepTrace(5000, now - DAY / 5));
  await insertAll(api, project, ordinary(2000, now - DAY / 6));
}

/** The most rows that one write takes. */
const LARGE_BATCH = 10_000;

interface Numbers {
  /** The numbers of the first trace, and of the one after the last. */
  readonly from: number;
  readonly to: number;
}

/** Traces of one span over the last hour, the newest with the highest number. */
export async function plantWide(api: Api, project: Project, { from, to }: Numbers): Promise<void> {
  const random = numbers(13 + from);
  const now = Date.now();
  for (let first = from; first < to; first += LARGE_BATCH) {
    const spans = Array.from({ length: Math.min(LARGE_BATCH, to - first) }, (_, offset) => {
      const index = first + offset;
      const at = now - 3_000_000 + Math.floor(((index - from) / (to - from)) * 2_900_000);
      return {
        id: `w-${index}`,
        span_id: `w-${index}`,
        root_span_id: `w-${index}`,
        created: new Date(at).toISOString(),
        span_attributes: { name: "chat", type: "llm" },
        metrics: { start: at / 1000, end: at / 1000 + random() * 3, tokens: Math.floor(random() * 2000) },
        metadata: { model: `model-${index % 7}`, user_id: `u${index % 1000}` },
        scores: { Helpful: Math.round(random() * 100) / 100 },
        tags: index % 3 === 0 ? ["prod"] : [],
        input: `question ${index}`,
        output: `answer ${index}`,
      };
    });
    await api.insert("project_logs", project.id, spans);
  }
}

/** Rows of each experiment whose comparison is measured. */
export const COMPARED = 5000;

/** An experiment whose rows are right by chance. */
export async function plantCompared(api: Api, project: Project, name: string, every: number): Promise<void> {
  const id = await makeExperiment(api, project, name);
  const rows = Array.from({ length: COMPARED }, (_, index) => ({
    id: `${name}-${index}`,
    span_id: `${name}-${index}`,
    root_span_id: `${name}-${index}`,
    input: { question: `What is ${index} + ${index}?` },
    expected: index * 2,
    output: index % every === 0 ? index : index * 2,
    scores: { Exact: index % every === 0 ? 0 : 1 },
    span_attributes: { name: "eval", type: "eval" },
  }));
  await api.insert("experiment", id, rows);
}
