// Spans of a logger as programs make them: nested, in promises, updated behind their end, ended elsewhere.

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { currentSpan, flush, initLogger, login, traced, updateSpan, wrapTraced } from "braintrust";
import { below, named, read, same } from "./reading.mjs";

const [run, split, root] = process.argv.slice(2);
if (split) {
  // What another process does with a span that this one began, and with the trace it belongs to.
  await login();
  updateSpan({ exported: split, output: "from elsewhere", metadata: { elsewhere: true }, metrics: { end: 1e10 } });
  updateSpan({ exported: root, metadata: { elsewhere: { b: 2 } }, tags: ["elsewhere"] });
  await flush();
  process.exit();
}

const projectName = `javascript-logger-${run}`;
const logger = initLogger({ projectName });

const outer = wrapTraced(async function outer(a) {
  return (await inner(a + 1)) * 2;
});
const inner = wrapTraced(
  async (b) => {
    currentSpan().log({ metadata: { seen: b } });
    return b * 10;
  },
  { name: "renamed", type: "tool", event: { metadata: { fixed: 1 } } },
);
same("nested", await outer(4), 100);

// In promises, which end in another order than they began in.
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const squares = await traced(
  (span) =>
    Promise.all(
      [0, 1, 2, 3, 4].map((number) =>
        traced(
          async (step) => {
            await wait(50 - number * 10);
            if (number === 3) await logger.flush();
            await traced(() => wait(1), { name: `within-${number}`, event: { input: number } });
            step.log({ output: number * number });
            return number * number;
          },
          { name: `step-${number}`, event: { input: { number } } },
        ),
      ),
    ),
  { name: "gathering" },
);
same("in promises", squares, [0, 1, 4, 9, 16]);

// A failing one, and one that is given its times.
await traced(
  async () => {
    throw new Error("on purpose");
  },
  { name: "failing", type: "llm" },
).catch((error) => same("raised", error.message, "on purpose"));
const timed = logger.startSpan({ name: "timed", startTime: 1000.5, event: { input: "begun" } });
await logger.flush();
timed.setAttributes({ name: "renamed later", type: "score" });
timed.log({ output: "ended" });
timed.end({ endTime: 1002.75 });

// Begun here, updated in another process behind a flush, ended here afterwards.
const rootSpan = logger.startSpan({
  name: "root",
  event: { id: `${projectName}-root`, input: "r", metadata: { elsewhere: { a: 1 }, here: 1 }, tags: ["here"] },
});
const splitSpan = rootSpan.startSpan({ name: "split", event: { input: { begun: "here" } } });
await logger.flush();
execFileSync(process.execPath, [fileURLToPath(import.meta.url), run, await splitSpan.export(), await rootSpan.export()]);
rootSpan.log({ output: "here", metadata: { here: 2 } });
rootSpan.end();
await logger.flush();
updateSpan({ exported: await rootSpan.export(), scores: { late: 0.5 }, metadata: { later: [1, { x: null }] } });
await logger.flush();

// Many steps of one span, some with a flush between them; and rows beside all spans.
const steps = logger.startSpan({ name: "steps" });
for (let i = 0; i < 30; i += 1) {
  steps.log({ metadata: { last: i, [`step-${i}`]: { i } }, metrics: { steps: i }, output: [i] });
  if (i % 10 === 0) await logger.flush();
}
steps.end();
const ids = [];
for (let i = 0; i < 250; i += 1) {
  ids.push(await logger.log({ input: i, output: i * i, scores: { even: i % 2 === 0 } }, { allowConcurrentWithSpans: true }));
}
await logger.flush();

const { id } = await logger.project;
const rows = await read("project_logs", id);
const page = await read("project_logs", id, { limit: 10 });
same("pages give the same", Object.keys(page).sort(), Object.keys(rows).sort());
same("rows", Object.keys(rows).length, 2 + 11 + 1 + 1 + 2 + 1 + 250);
const spans = named(rows);

same("outer", [spans.outer.input, spans.outer.output, spans.outer.span_parents, spans.outer.is_root], [[4], 100, null, true]);
below(spans.renamed, spans.outer);
same("inner", [spans.renamed.input, spans.renamed.output, spans.renamed.metadata], [[5], 50, { fixed: 1, seen: 5 }]);
same("its type", spans.renamed.span_attributes.type, "tool");
for (let number = 0; number < 5; number += 1) {
  const step = spans[`step-${number}`];
  below(step, spans.gathering);
  same("step", [step.input, step.output], [{ number }, number * number]);
  below(spans[`within-${number}`], step);
}
same("failed", spans.failing.error.includes("on purpose"), true);
let row = spans["renamed later"];
same("timed", [row.input, row.output, row.metrics.start, row.metrics.end], ["begun", "ended", 1000.5, 1002.75]);
same("its type", row.span_attributes.type, "score");

row = spans.split;
same("split", [row.input, row.output, row.metadata, row.metrics.end], [{ begun: "here" }, "from elsewhere", { elsewhere: true }, 1e10]);
below(row, spans.root);
row = spans.root;
same("root", [row.id, row.input, row.output], [`${projectName}-root`, "r", "here"]);
same("updated", [row.scores, row.tags], [{ late: 0.5 }, ["here", "elsewhere"]]);
same("merged", row.metadata, { elsewhere: { a: 1, b: 2 }, here: 2, later: [1, { x: null }] });
row = spans.steps;
same("steps", [row.output, row.metrics.steps], [[29], 29]);
same("merged", row.metadata, { last: 29, ...Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`step-${i}`, { i }])) });
for (const [i, id] of ids.entries()) {
  same(`row ${i}`, [rows[id].input, rows[id].output, rows[id].scores, rows[id].is_root], [i, i * i, { even: i % 2 === 0 ? 1 : 0 }, true]);
}
console.log("logger: ok");
