// Eval(): twice, with a base, trials, a scorer that fails and a task that does; its numbers, and the rows that it left.

import { BaseExperiment, Eval, init, initDataset, traced } from "braintrust";
import { URL, all, below, named, read, same } from "./reading.mjs";

const project = `javascript-evaluation-${process.argv[2]}`;
const cases = [1, 2, 3, 4].map((input) => ({ input, expected: input * 2, metadata: { case: input }, tags: [`tag-${input}`] }));

const exact = ({ output, expected }) => (output === expected ? 1 : 0);
const near = ({ output, expected }) => ({
  name: "near",
  score: Math.max(0, 1 - Math.abs(output - expected) / 8),
  metadata: { by: output - expected },
});
function failing({ input }) {
  if (input === 2) throw new Error("on purpose");
  return input === 3 ? null : 0.5;
}

async function firstTask(input, { metadata }) {
  metadata.hooked = true;
  await traced((span) => span.log({ input, output: `${input}`, metrics: { tokens: 10 } }), { name: "thinking", type: "llm" });
  return input <= 2 ? input * 2 : 0;
}

// 2 becomes worse, 3 and 4 better, of which 3 in one trial of two.
const secondTask = (input, { trialIndex }) => ({ 1: 2, 2: 0, 3: [6, 2][trialIndex], 4: 8 })[input];

const run = (experimentName, task, more = {}) =>
  Eval(project, { experimentName, data: () => cases, task, scores: [exact, near, failing], ...more });
const told = ({ summary }) =>
  Object.fromEntries(
    Object.values(summary.scores).map(({ name, score, diff, improvements, regressions }) => [name, [score, diff ?? null, improvements, regressions]]),
  );

const first = await run("first", firstTask, { description: "d", metadata: { run: 1 } });
same("first", told(first), { exact: [0.5, null, 0, 0], near: [0.5625, null, 0, 0], failing: [0.5, null, 0, 0] });
same("its names", [first.summary.projectName, first.summary.experimentName], [project, "first"]);
same("compared with nothing", first.summary.comparisonExperimentName ?? null, null);
same("its address", first.summary.experimentUrl, `${URL}/app/default/p/${project}/experiments/first`);
same("its metrics", [first.summary.metrics.tokens.metric, first.summary.metrics.llm_calls.metric], [10, 1]);

const second = await run("second", secondTask, { baseExperimentName: "first", trialCount: 2 });
same("compared with", second.summary.comparisonExperimentName, "first");
// exact: 1, 0, 0.5 and 1 after 1, 1, 0 and 0. near: 1, 0.5, 0.75 and 1 after 1, 1, 0.25 and 0.
same("second", told(second), { exact: [0.625, 0.125, 2, 1], near: [0.8125, 0.25, 2, 1], failing: [0.5, 0, 0, 0] });
same("results", second.results.length, 8);

// What is there of the first: each case is a trace of the case, its task with what that did, and three scorers.
const firstId = first.summary.experimentId;
let rows = Object.values(await read("experiment", firstId));
same("rows", rows.length, 4 * (1 + 1 + 1 + 3));
const roots = rows.filter((row) => row.is_root);
same("roots", roots.map((row) => row.input).sort(), [1, 2, 3, 4]);
for (const root of roots) {
  const i = root.input;
  const output = i <= 2 ? i * 2 : 0;
  const trace = named(rows.filter((row) => row.root_span_id === root.root_span_id));
  same("its spans", Object.keys(trace).sort(), ["eval", "exact", "failing", "near", "task", "thinking"]);
  same("case", [root.output, root.expected, root.tags, root.span_attributes.type], [output, i * 2, [`tag-${i}`], "eval"]);
  same("case's metadata", [root.metadata.case, root.metadata.hooked], [i, true]);
  same("a scorer's error", Object.keys(root.metadata.scorer_errors ?? {}), i === 2 ? ["failing"] : []);
  for (const name of ["task", "exact", "near", "failing"]) below(trace[name], root);
  below(trace.thinking, trace.task);
  same("task", [trace.task.input, trace.task.output], [i, output]);
  same("exact", [trace.exact.scores, trace.exact.span_attributes.purpose], [{ exact: i <= 2 ? 1 : 0 }, "scorer"]);
  same("near", [trace.near.scores, trace.near.metadata], [{ near: i <= 2 ? 1 : 1 - i / 4 }, { by: output - i * 2 }]);
  same("failing", trace.failing.scores ?? null, { 1: { failing: 0.5 }, 2: null, 3: null, 4: { failing: 0.5 } }[i]);
  same("its error", String(trace.failing.error).includes("on purpose"), i === 2);
}

rows = Object.values(await read("experiment", second.summary.experimentId));
same("trials", rows.filter((row) => row.is_root).map((row) => row.input).sort(), [1, 1, 2, 2, 3, 3, 4, 4]);
const opened = init(project, { experiment: "second", open: true });
same("opened", (await all(opened)).map((row) => row.id).sort(), rows.map((row) => row.id).sort());

// The cases of an experiment are the data of the next, whatever the ids of its spans are.
const third = await run("third", () => 0, { data: BaseExperiment({ name: "first" }), scores: [({ expected }) => expected / 8] });
same("cases", third.results.map((result) => [result.input, result.expected]).sort(), cases.map((one) => [one.input, one.expected]));
same("compared with its data", third.summary.comparisonExperimentName, "first");
same("third", told(third), { scorer_0: [0.625, null, 0, 0] });

// Over a dataset, with a task that fails; the name is taken, so it gets another. Compared with the newest.
const dataset = initDataset(project, { dataset: "cases" });
for (const one of cases) dataset.insert({ id: `case-${one.input}`, ...one });
await dataset.flush();
const broken = (input) => {
  if (input === 4) throw new Error("broken task");
  return input * 2;
};
const fourth = await run("second", broken, { data: dataset, scores: [exact] });
same("another name", [fourth.summary.experimentName !== "second", fourth.summary.experimentName.startsWith("second")], [true, true]);
same("compared with the newest", fourth.summary.comparisonExperimentName, "third");
same("fourth", told(fourth), { exact: [1, null, 0, 0] });
same("what failed", fourth.results.filter((result) => result.error).map((result) => result.error.message), ["broken task"]);
const records = Object.fromEntries((await all(dataset)).map((record) => [record.id, record]));
for (const row of Object.values(await read("experiment", fourth.summary.experimentId)).filter((row) => row.is_root)) {
  const { object_type, object_id, id, _xact_id } = row.origin;
  const record = `case-${row.input}`;
  same("origin", [object_type, object_id, id, _xact_id], ["dataset", await dataset.id, record, records[record]._xact_id]);
  if (row.input === 4) same("its error", row.error.includes("broken task"), true);
}
console.log("evaluation: ok");
