// The project demo: twelve spans in five traces, two experiments and a dataset, as the reference of the language has them.
import type { Project } from "../seed";
import type { Api } from "./api";
import { textAt } from "./json";
import { plantVersions } from "./planted";
import { plantPlayground } from "./playgrounds";
import { plantPrompts } from "./prompts";

export interface Demo extends Project {
  readonly experiments: { readonly X1: string; readonly X2: string };
  readonly dataset: string;
  readonly playground: string;
}

/** One span a line, in the order in which they are inserted. */
const SPANS = String.raw`
{"id":"a1","span_id":"a1","root_span_id":"a1","created":"2026-05-04T23:30:00Z","span_attributes":{"name":"chat","type":"task"},"metrics":{"start":1777937400,"end":1777937406},"input":{"messages":[{"role":"user","content":"How do I reset my password?"}]},"output":"Use the reset link on the login page.","scores":{"Helpful":0.9},"metadata":{"user_id":"u1","env":"prod","session":{"name":"s-1"}},"tags":["prod","billing"]}
{"id":"a2","span_id":"a2","root_span_id":"a1","span_parents":["a1"],"created":"2026-05-04T23:30:01Z","span_attributes":{"name":"openai.chat","type":"llm"},"metrics":{"start":1777937401,"end":1777937404,"prompt_tokens":100,"completion_tokens":50,"tokens":150,"time_to_first_token":0.4},"scores":{"Factuality":0.8},"metadata":{"model":"gpt-4o"}}
{"id":"a3","span_id":"a3","root_span_id":"a1","span_parents":["a1"],"created":"2026-05-04T23:30:04Z","span_attributes":{"name":"search_docs","type":"tool"},"metrics":{"start":1777937404,"end":1777937405},"input":{"query":"password reset"},"output":{"hits":3}}
{"id":"a4","span_id":"a4","root_span_id":"a1","span_parents":["a1"],"created":"2026-05-04T23:30:06Z","span_attributes":{"name":"Toxicity","type":"score","purpose":"scorer"},"metrics":{"start":1777937405,"end":1777937406},"scores":{"Toxicity":0.0}}
{"id":"b1","span_id":"b1","root_span_id":"b1","created":"2026-05-05T00:15:00Z","span_attributes":{"name":"chat","type":"task"},"metrics":{"start":1777940100,"end":1777940131},"input":{"messages":[{"role":"user","content":"Cancel my order, it was 50% off"}]},"metadata":{"user_id":"u2","env":"prod"},"tags":["prod"]}
{"id":"b2","span_id":"b2","root_span_id":"b1","span_parents":["b1"],"created":"2026-05-05T00:15:00.500Z","span_attributes":{"name":"openai.chat","type":"llm"},"metrics":{"start":1777940100.5,"end":1777940101,"prompt_tokens":200,"completion_tokens":20,"tokens":220,"time_to_first_token":0.2},"scores":{"Factuality":0.4},"metadata":{"model":"gpt-4o-mini"}}
{"id":"b3","span_id":"b3","root_span_id":"b1","span_parents":["b1"],"created":"2026-05-05T00:15:01Z","span_attributes":{"name":"cancel_order","type":"tool"},"metrics":{"start":1777940101,"end":1777940131},"error":{"type":"timeout","message":"upstream timeout after 30s"}}
{"id":"c1","span_id":"c1","root_span_id":"c1","created":"2026-05-05T10:00:00Z","span_attributes":{"name":"chat","type":"task"},"metrics":{"start":1777975200,"end":1777975209},"input":{"messages":[{"role":"user","content":"Where is my refund?"}]},"output":{"text":"Refund issued","amount":12.5},"scores":{"Helpful":0.5},"metadata":{"user_id":"u1","env":"staging"},"tags":["staging","prod"]}
{"id":"c2","span_id":"c2","root_span_id":"c1","span_parents":["c1"],"created":"2026-05-05T10:00:01Z","span_attributes":{"name":"openai.chat","type":"llm"},"metrics":{"start":1777975201,"end":1777975205,"prompt_tokens":1000,"completion_tokens":300,"tokens":1300,"prompt_cached_tokens":400,"time_to_first_token":1.0},"scores":{"Factuality":1.0},"metadata":{"model":"gpt-4o"}}
{"id":"c3","span_id":"c3","root_span_id":"c1","span_parents":["c1"],"created":"2026-05-05T10:00:05Z","span_attributes":{"name":"anthropic.messages","type":"llm"},"metrics":{"start":1777975205,"end":1777975208,"prompt_tokens":500,"completion_tokens":100,"tokens":600},"scores":{"Factuality":null},"metadata":{"model":"claude-sonnet"}}
{"id":"d1","span_id":"d1","root_span_id":"d1","created":"2026-05-06T09:00:00Z","span_attributes":{"name":"completion","type":"llm"},"metrics":{"start":1778058000,"end":1778058002,"prompt_tokens":10,"completion_tokens":5,"tokens":15},"input":"Translate 'good morning' to French","error":"rate limited","scores":{"Factuality":0.6,"Helpful":0.2},"metadata":{"user_id":"u3","env":"prod","model":"gpt-4o-mini","config":"{\"region\":\"eu\",\"a.b\":7}"},"tags":[]}
{"id":"e2","span_id":"e2","root_span_id":"e1","span_parents":["e1"],"created":"2026-05-06T12:00:00Z","span_attributes":{"name":"openai.chat","type":"llm"},"metrics":{"start":1778068800,"end":1778068802,"prompt_tokens":20,"completion_tokens":10,"tokens":30},"scores":{}}
`;

/** The spans of demo. */
export const demoSpans = (): readonly unknown[] =>
  SPANS.trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));

/** The range of time that has all spans of demo, as addresses write it. */
export const DEMO_RANGE = "2026-05-04T00:00Z..2026-05-07T00:00Z";

const QUESTIONS = [
  { input: { q: "1+1" }, expected: 2, level: "easy" },
  { input: { q: "2+2" }, expected: 4, level: "easy" },
  { input: { q: "3+3" }, expected: 6, level: "hard" },
];

/** One row of an experiment: a question, and the score of its answer. */
export interface Evaluation {
  readonly question: string;
  readonly output?: unknown;
  readonly expected?: unknown;
  readonly score: number;
  readonly level?: string;
}

/** The events of an experiment's rows. Their ids start with a prefix and end with a letter each. */
export const evaluations = (prefix: string, rows: readonly Evaluation[]) =>
  rows.map(({ question, output = null, expected = null, score, level }, index) => {
    const id = `${prefix}${"abcdefgh".charAt(index)}`;
    return {
      id,
      span_id: id,
      root_span_id: id,
      input: { q: question },
      expected,
      output,
      scores: { Exact: score },
      ...(level === undefined ? {} : { metadata: { level } }),
      span_attributes: { name: "eval", type: "eval" },
    };
  });

export async function makeExperiment(api: Api, project: Project, name: string): Promise<string> {
  return textAt(await api.call("POST", "/v1/experiment", { project_id: project.id, name }), "id");
}

async function plantExperiment(api: Api, project: Project, name: string, exact: readonly number[]): Promise<string> {
  const id = await makeExperiment(api, project, name);
  const rows = QUESTIONS.map(({ input, expected, level }, index) => {
    const score = exact[index] ?? 0;
    return { question: input.q, expected, output: score === 1 ? expected : 0, score, level };
  });
  await api.insert("experiment", id, evaluations(name.toLowerCase(), rows));
  return id;
}

async function plantDataset(api: Api, project: Project): Promise<string> {
  const id = textAt(await api.call("POST", "/v1/dataset", { project_id: project.id, name: "DS1" }), "id");
  const events = QUESTIONS.map(({ input, expected, level }, index) => ({
    id: `r${index + 1}`,
    input,
    expected,
    metadata: { level },
  }));
  await api.insert("dataset", id, events);
  return id;
}

export async function plantDemo(api: Api, project: Project): Promise<Demo> {
  await api.insert("project_logs", project.id, demoSpans());
  await plantVersions(api, await plantPrompts(api, project, "Answer", "Answer {{question}} for {{metadata.level}}."));
  const experiments = {
    X1: await plantExperiment(api, project, "X1", [1, 0, 1]),
    X2: await plantExperiment(api, project, "X2", [1, 1, 0]),
  };
  const dataset = await plantDataset(api, project);
  return { ...project, experiments, dataset, playground: await plantPlayground(api, project, "PG1", "Answer {{question}}.") };
}
