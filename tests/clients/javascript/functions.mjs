// Functions that the server runs: invoked whole and streamed, with tools, as judges, in an evaluation, below live spans.

import assert from "node:assert/strict";
import { Eval, initFunction, initLogger, invoke, projects, startSpan } from "braintrust";
import { ask, HEADERS, named, read, same, URL } from "./reading.mjs";

// Polls until the server has written what it logs behind an answer.
const POLLS_MAX = 600;
const POLL_MS = 50;

const projectName = `javascript-functions-${process.argv[2]}`;
const CITY = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const FORECAST = { type: "function", function: { name: "forecast", parameters: CITY } };
const SHAPE = { type: "json_schema", json_schema: { name: "place", schema: CITY } };
const CHOICES = { right: 1, wrong: 0.25 };
const QUESTION = [{ role: "system", content: "be brief" }, { role: "user", content: "{{question}}" }];

async function push() {
  const project = projects.create({ name: projectName });
  const prompts = {
    plain: {},
    shaped: { params: { response_format: SHAPE } },
    calling: { tools: [FORECAST] },
    broken: { model: "broken" },
  };
  for (const [slug, more] of Object.entries(prompts)) {
    project.prompts.create({ name: slug, slug, messages: QUESTION, model: "scripted", ...more });
  }
  for (const useCot of [true, false]) {
    project.scorers.create({
      name: `Judge ${useCot}`,
      slug: `judge-${useCot}`,
      messages: [{ role: "user", content: "Is {{output}} right for {{input}}, where {{expected}} is expected?" }],
      model: "scripted",
      useCot,
      choiceScores: CHOICES,
    });
  }
  project.prompts.create({ name: "look-up", slug: "look-up", prompt: "look up {{input}}", model: "scripted" });
  await project.publish();
  const { objects } = await ask("GET", `/v1/function?project_name=${projectName}&slug=look-up`);
  const agents = projects.create({ name: projectName });
  const tools = [{ type: "function", id: objects[0].id }, { type: "global", name: "ExactMatch", function_type: "scorer" }];
  agents.prompts.create({ name: "agent", slug: "agent", messages: QUESTION, model: "scripted", tools });
  await agents.publish();
}

const invoked = (slug, question, more = {}) => invoke({ projectName, slug, input: { question }, ...more });
const judged = (slug, choice, more = {}) =>
  invoke({ projectName, slug, input: { input: "one and one", output: `two [choose ${choice}]`, expected: "2" }, ...more });

async function chunks(stream) {
  const found = [];
  const reader = stream.copy().toReadableStream().getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) found.push(next.value);
  return found;
}

/** A stream is read once for its pieces, and once for its value. */
async function streamed(slug, question, more = {}) {
  const stream = await invoked(slug, question, { stream: true, ...more });
  return { pieces: await chunks(stream), value: await stream.finalValue() };
}

const project = await push().then(() => ask("POST", "/v1/project", { name: projectName }));

// Without a parent, and nothing is logged of all this.
same("a text", await invoked("plain", "hi"), "echo: hi (told: be brief)");
same("a text that looks like JSON", await invoked("plain", "[1]"), "echo: [1] (told: be brief)");
const another = [{ role: "user", content: "and you" }];
same("another message", await invoked("plain", "hi", { messages: another }), "echo: and you (told: be brief)");
same("a shape", await invoked("shaped", "hi"), { city: "text" });
same("a shape as text", await invoked("shaped", "hi", { mode: "text" }), '{"city":"text"}');
same("a call", await invoked("calling", "hi"), { city: "Paris" });
const [call] = await invoked("calling", "hi", { mode: "parallel" });
same("calls", [call.name, call.arguments], ["forecast", { city: "Paris" }]);
const exact = await invoke({ globalFunction: "ExactMatch", input: { output: "a", expected: "a" } });
same("a global function", exact, { name: "ExactMatch", score: 1 });

// The same as streams.
const text = await streamed("plain", "hi");
assert.ok(text.pieces.filter(({ type }) => type === "text_delta").length > 1, JSON.stringify(text.pieces));
same("a streamed text", text.value, "echo: hi (told: be brief)");
for (const [slug, value] of [["shaped", { city: "text" }], ["calling", { city: "Paris" }]]) {
  const { pieces, value: found } = await streamed(slug, "hi");
  assert.ok(pieces.every(({ type }) => type !== "text_delta"), JSON.stringify(pieces));
  same(`${slug}, streamed`, found, value);
}

// Failures before the first piece have a status, and behind it an event.
await assert.rejects(invoked("none", "hi"), { status: 404 });
await assert.rejects(invoked("plain", "hi", { overrides: { model: "none" } }), { status: 400 });
for (const [status, passed] of [[429, 429], [500, 502], [401, 400]]) {
  for (const stream of [false, true]) {
    await assert.rejects(invoked("plain", `fail ${status}`, { stream }), { status: passed });
  }
}
await assert.rejects(invoke({ projectName, slug: "plain", input: { other: 1 }, strict: true }), { status: 400 });
await assert.rejects(invoked("agent", "rounds 99"), { status: 500 });
const broken = await invoked("broken", "hi", { stream: true });
const pieces = await chunks(broken);
assert.ok(pieces.some(({ type }) => type === "text_delta"), JSON.stringify(pieces));
const { data: why } = pieces.find(({ type }) => type === "error");
assert.match(why, /scripted/);
await assert.rejects(broken.finalValue(), (error) => String(error).includes(why));

// Tools that the server runs, for three rounds of two calls.
const ROUND = 'echo: look up Paris; {"name":"ExactMatch","score":1}';
const RESULTS = `results: ${ROUND}; ${ROUND}; ${ROUND}`;
same("three rounds", await invoked("agent", "rounds 3"), RESULTS);
const rounds = await streamed("agent", "rounds 3");
same("three rounds, streamed", rounds.value, RESULTS);
for (const name of ["look-up", "ExactMatch"]) {
  const events = rounds.pieces.filter(({ type, data }) => type === "progress" && data.name === name).map(({ data }) => data.event);
  same(`runs of ${name}`, [events.filter((event) => event === "start").length, events.filter((event) => event === "done").length], [3, 3]);
}

// Judges, with reasons and without.
for (const [choice, score] of Object.entries(CHOICES)) {
  const reasoned = { name: "Judge true", score, metadata: { rationale: "The first choice fits.", choice } };
  same("a judge with reasons", await judged("judge-true", choice), reasoned);
  same("a judge with reasons, streamed", await (await judged("judge-true", choice, { stream: true })).finalValue(), reasoned);
  same("a judge without", await judged("judge-false", choice), { name: "Judge false", score, metadata: { choice } });
}
same("nothing was logged", await read("project_logs", project.id), {});

/** Rows of an object, when there are so many and all have ended. */
async function logged(count, kind = "project_logs", id = project.id) {
  let rows = {};
  for (let poll = 0; poll < POLLS_MAX; poll += 1) {
    rows = await read(kind, id);
    if (Object.keys(rows).length >= count && Object.values(rows).every((row) => row.metrics.end)) break;
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
  same(`rows of ${kind}`, Object.keys(rows).length, count);
  return rows;
}

/** Rows below a row, by the names of their spans. */
function below(rows, parent) {
  const found = Object.values(rows).filter((row) => row.span_parents?.[0] === parent.span_id);
  for (const row of found) same("the trace", row.root_span_id, parent.root_span_id);
  return named(found);
}

// Below a live span; with an empty parent, which is an object that exports none, below none.
const logger = initLogger({ projectName });
const request = await logger.traced(
  async (span) => {
    same("below a span", await invoked("plain", "hi", { metadata: { who: "me" }, tags: ["t"] }), "echo: hi (told: be brief)");
    await judged("judge-true", "wrong");
    same("an empty parent", await invoked("plain", "unseen", { parent: { export: async () => "" } }), "echo: unseen (told: be brief)");
    return span;
  },
  { name: "request" },
);
await invoked("plain", "below the logger");
await invoked("plain", "by its name", { parent: await request.export() });
await logger.flush();
let rows = await logged(9);
const root = rows[request.id];
const calls = below(rows, root);
same("functions", Object.keys(calls).sort(), ["Judge true", "plain"]);
const plain = Object.values(rows).find((row) => row.input?.question === "hi" && row.span_attributes.name === "plain");
same("its parent", [plain.span_parents, plain.root_span_id], [[root.span_id], root.root_span_id]);
same("its fields", [plain.output, plain.metadata, plain.tags], ["echo: hi (told: be brief)", { who: "me" }, ["t"]]);
const model = below(rows, plain)["Chat Completion"];
same("the model", [model.span_attributes.type, model.metadata.prompt.variables.question], ["llm", "hi"]);
const judge = calls["Judge true"];
same("a score", [judge.span_attributes.type, judge.span_attributes.purpose, judge.scores], ["score", "scorer", { "Judge true": 0.25 }]);
same("the purpose below", below(rows, judge)["Chat Completion"].span_attributes.purpose, "scorer");
const alone = Object.values(rows).find((row) => row.input?.question === "below the logger");
same("a root", [alone.span_parents ?? null, alone.is_root], [null, true]);

// The slug in an answer goes on below its span.
const body = JSON.stringify({ project_name: projectName, slug: "plain", input: { question: "hi" }, parent: await request.export() });
const answer = await fetch(`${URL}/function/invoke`, { method: "POST", headers: { ...HEADERS, "Content-Type": "application/json" }, body });
const [rowId, slug] = ["x-bt-span-id", "x-bt-span-export"].map((name) => answer.headers.get(name));
startSpan({ name: "below", parent: slug }).end();
await logger.flush();
rows = await logged(12);
same("below it", Object.keys(below(rows, rows[rowId])).sort(), ["Chat Completion", "below"]);

// As the task and the scorers of an evaluation.
const { summary } = await Eval(projectName, {
  experimentName: "functions",
  data: [
    { input: { question: "two [choose right]" }, expected: "2" },
    { input: { question: "three [choose wrong]" }, expected: "2" },
  ],
  task: initFunction({ projectName, slug: "plain" }),
  scores: [initFunction({ projectName, slug: "judge-true" }), initFunction({ projectName, slug: "judge-false" })],
});
const scores = Object.fromEntries(Object.values(summary.scores).map(({ name, score }) => [name, score]));
same("scores", scores, { "Judge true": 0.625, "Judge false": 0.625 });
// Of each case the root, the task, two scores, and below the latter three a function with its model.
rows = await logged(20, "experiment", summary.experimentId);
for (const one of Object.values(rows).filter((row) => row.is_root)) {
  const steps = below(rows, one);
  const run = below(rows, steps.task).plain;
  same("a task", [run.output, one.output], [steps.task.output, steps.task.output]);
  same("its model", Object.keys(below(rows, run)), ["Chat Completion"]);
  for (const name of ["Judge true", "Judge false"]) {
    const scorer = steps[`initFunction-${projectName}-${name.toLowerCase().replace(" ", "-")}-latest`];
    const judged = below(rows, scorer)[name];
    same("a score", [judged.scores, Object.keys(judged.scores)], [scorer.scores, [name]]);
    same("its judge", Object.keys(below(rows, judged)), ["Chat Completion"]);
  }
}
console.log("functions: ok");
