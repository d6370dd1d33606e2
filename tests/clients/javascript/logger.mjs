// Spans of a project's log: nested, updated from elsewhere, with feedback; a trace that goes on under an exported span.

import assert from "node:assert/strict";
import * as braintrust from "braintrust";
import { fetched, projectId, run } from "./reading.mjs";

const project = `javascript-logger-${run}`;
const logger = braintrust.initLogger({ projectName: project });
let exported;
await logger.traced(
  async (span) => {
    span.log({ input: { question: "why ü?" }, metadata: { step: 1 } });
    await span.traced(async (child) => child.log({ output: "so", metrics: { tokens: 3 } }), { name: "child", type: "llm" });
    await Promise.all([1, 2].map((n) => span.traced(async (one) => one.log({ input: n }), { name: `at once ${n}` })));
    span.log({ output: "because", scores: { good: 1 }, tags: ["first"] });
    exported = await span.export();
  },
  { name: "root", event: { id: "root-row" } },
);
await logger.flush();
logger.logFeedback({ id: "root-row", scores: { human: 0.5 }, comment: "nice", metadata: { by: "me" } });
await braintrust.updateSpan({ exported, metadata: { late: true }, tags: ["second"] });
const below = braintrust.startSpan({ name: "below", parent: exported });
below.log({ input: "there" });
below.end();
await braintrust.flush();

const rows = await fetched("project_logs", await projectId(project));
const byName = Object.fromEntries([...rows.values()].map((row) => [row.span_attributes.name, row]));
assert.deepEqual(Object.keys(byName).sort(), ["at once 1", "at once 2", "below", "child", "root"]);
const root = byName.root;
assert.equal(root.id, "root-row");
assert.deepEqual([root.input, root.output, root.metadata], [{ question: "why ü?" }, "because", { step: 1, late: true }]);
assert.deepEqual([root.scores, [...root.tags].sort(), root.span_parents], [{ good: 1, human: 0.5 }, ["first", "second"], null]);
assert.deepEqual(root.comments.map((one) => one.comment.text), ["nice"]);
for (const name of ["child", "below", "at once 1", "at once 2"]) {
  assert.deepEqual([byName[name].span_parents, byName[name].root_span_id], [[root.span_id], root.root_span_id], name);
}
assert.deepEqual([byName.child.span_attributes.type, byName.child.metrics.tokens], ["llm", 3]);
console.log("logger: ok");
