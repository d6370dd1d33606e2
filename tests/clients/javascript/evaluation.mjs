// Evaluations: twice with a base, trials and a scorer that fails; opened again, and as a dataset; prompts by slug.

import assert from "node:assert/strict";
import * as braintrust from "braintrust";
import { all, called, fetched, projectId, run } from "./reading.mjs";

const project = `javascript-evaluation-${run}`;
const exact = ({ output, expected }) => ({ name: "exact", score: output === expected ? 1 : 0 });
function failing({ input }) {
  if (input === 2) throw new Error("on purpose");
  return 0.5;
}
const evaluated = async (experimentName, task, more = {}) => {
  const data = () => [1, 2, 3].map((input) => ({ input, expected: input * 2 }));
  return (await braintrust.Eval(project, { experimentName, data, task, scores: [exact, failing], trialCount: 2, ...more })).summary;
};

const first = await evaluated("first", (input) => input);
assert.deepEqual([first.scores.exact.score, first.comparisonExperimentName], [0, undefined]);
const second = await evaluated("second", (input) => input * 2, { baseExperimentName: "first" });
assert.equal(second.comparisonExperimentName, "first");
const { score, diff, improvements, regressions } = second.scores.exact;
assert.deepEqual([score, diff, improvements, regressions], [1, 1, 3, 0]);
assert.deepEqual([second.scores.failing.score, second.scores.failing.regressions], [0.5, 0]);
assert.equal(second.metrics.duration.unit, "s");
// A base that is not there is left out, and the evaluation goes on.
const third = await evaluated("second", (input) => input * 2, { baseExperimentName: "nowhere" });
assert.ok(third.experimentName.startsWith("second-"), third.experimentName);

const rows = [...(await fetched("experiment", second.experimentId)).values()];
assert.equal(rows.filter((row) => row.is_root).length, 6);
const types = new Set(rows.map((row) => row.span_attributes.type));
assert.deepEqual([...types].sort(), ["eval", "score", "task"]);
const opened = braintrust.init(project, { experiment: "first", open: true });
const cases = await all(opened.asDataset());
assert.deepEqual(cases.map((one) => one.input).sort(), [1, 1, 2, 2, 3, 3]);
await assert.rejects(async () => await braintrust.init(project, { experiment: "nowhere", open: true }).id, /nowhere/);

const project_id = await projectId(project);
const prompt_data = { prompt: { type: "chat", messages: [{ role: "user", content: "hi {{who}}" }] }, options: { model: "m" } };
const made = await called("POST", "/v1/prompt", { project_id, name: "Greeting", slug: "greeting", prompt_data });
prompt_data.prompt.messages[0].content = "hello {{who}}";
await called("PATCH", `/v1/prompt/${made.id}`, { prompt_data });
const built = async (more) => (await braintrust.loadPrompt({ projectName: project, slug: "greeting", ...more })).build({ who: "you" });
assert.deepEqual((await built()).messages, [{ role: "user", content: "hello you" }]);
assert.deepEqual((await built({ version: made._xact_id })).messages, [{ role: "user", content: "hi you" }]);
await assert.rejects(braintrust.loadPrompt({ projectName: project, slug: "nowhere" }), /nowhere/);
console.log("evaluation: ok");
