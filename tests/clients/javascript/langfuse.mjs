// Examples of Langfuse's documentation with its unmodified SDK for JavaScript, read back through its API and through ours.

import { LangfuseClient } from "@langfuse/client";
import { LangfuseSpanProcessor } from "@langfuse/otel";
import { propagateAttributes, setLangfuseTracerProvider, startActiveObservation, startObservation } from "@langfuse/tracing";
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { isDeepStrictEqual } from "node:util";

const [run] = process.argv.slice(2);
const { LANGFUSE_BASE_URL: URL, ASSAY_KEY, ASSAY_PROJECT } = process.env;
const processor = new LangfuseSpanProcessor();
const provider = new NodeTracerProvider({ spanProcessors: [processor] });
provider.register();
setLangfuseTracerProvider(provider);
const langfuse = new LangfuseClient();

function same(found, wanted, what) {
  if (!isDeepStrictEqual(found, wanted)) {
    throw new Error(`${what}: ${JSON.stringify(found)}, and not ${JSON.stringify(wanted)}`);
  }
}

async function ours(query) {
  const answer = await fetch(`${URL}/btql`, {
    method: "POST",
    headers: { authorization: `Bearer ${ASSAY_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ query, fmt: "json" }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()).data;
}

async function observations(traceId) {
  const page = await langfuse.api.observations.getMany({ traceId });
  return Object.fromEntries(page.data.map((one) => [one.name, one]));
}

async function tracing() {
  const { traceId, rootId, generationId } = await startActiveObservation("request", async (span) =>
    propagateAttributes({ userId: "user-1", sessionId: `session-${run}`, tags: ["beta"], traceName: "support" }, async () => {
      span.update({ input: { q: "hi" }, metadata: { deep: { a: [1] }, text: "t" } });
      const tool = startObservation("lookup", { input: "hi" }, { asType: "tool" });
      tool.update({ output: ["doc"], level: "WARNING", statusMessage: "slow" }).end();
      const generation = startObservation(
        "answer",
        { model: "gpt-4o", modelParameters: { temperature: 0.5 }, input: [{ role: "user", content: "hi" }] },
        { asType: "generation" },
      );
      generation.update({ output: "hello", usageDetails: { input: 10, output: 5 }, costDetails: { total: 0.75 } }).end();
      langfuse.score.observation(generation, { name: "relevance", value: 0.75, comment: "good" });
      langfuse.score.trace(span, { name: "helpful", value: 1, dataType: "BOOLEAN" });
      span.update({ output: "hello" });
      return { traceId: span.traceId, rootId: span.id, generationId: generation.id };
    }),
  );
  await processor.forceFlush();
  await langfuse.flush();

  const { request, lookup, answer } = await observations(traceId);
  same([request.type, request.parentObservationId, answer.parentObservationId], ["SPAN", null, rootId], "the tree");
  same([JSON.parse(request.input), request.output], [{ q: "hi" }, "hello"], "input and output");
  same([request.metadata.deep, request.metadata.text], [{ a: [1] }, "t"], "metadata");
  same([lookup.type, lookup.level, lookup.statusMessage], ["TOOL", "WARNING", "slow"], "levels");
  same([answer.type, answer.model, answer.modelParameters], ["GENERATION", "gpt-4o", { temperature: 0.5 }], "the model");
  same([answer.usageDetails, answer.totalCost], [{ input: 10, output: 5, total: 15 }, 0.75], "usage");
  same([answer.userId, answer.sessionId, answer.traceName], ["user-1", `session-${run}`, "support"], "the trace");
  const trace = await langfuse.api.trace.get(traceId);
  same([trace.userId, trace.tags, trace.observations.length], ["user-1", ["beta"], 3], "the whole trace");
  same(trace.scores.map((one) => one.name).sort(), ["helpful", "relevance"], "its scores");
  same((await langfuse.api.sessions.get(`session-${run}`)).traces.map((one) => one.id), [traceId], "the session");
  const rows = await ours(`select: * | from: project_logs('${ASSAY_PROJECT}') | filter: root_span_id = '${traceId}'`);
  const row = (id) => rows.find((one) => one.span_id === id);
  same([row(traceId).scores, row(generationId).scores], [{ helpful: 1 }, { relevance: 0.75 }], "scores of rows");
  same(row(generationId).metrics.estimated_cost, 0.75, "the cost");
}

async function prompts() {
  const name = `folder/critic ${run}`;
  await langfuse.prompt.create({ name, type: "text", prompt: "Do you like {{movie}}?", labels: ["production"], config: { model: "m" } });
  await langfuse.prompt.create({ name, type: "text", prompt: "Rate {{movie}}." });
  const prompt = await langfuse.prompt.get(name, { cacheTtlSeconds: 0 });
  same([prompt.version, prompt.compile({ movie: "Dune" })], [1, "Do you like Dune?"], "production");
  same((await langfuse.prompt.get(name, { label: "latest", cacheTtlSeconds: 0 })).version, 2, "latest");
  await langfuse.prompt.update({ name, version: 2, newLabels: ["production"] });
  same((await langfuse.prompt.get(name, { cacheTtlSeconds: 0 })).version, 2, "a moved label");
}

async function datasets() {
  const name = `capitals ${run}`;
  await langfuse.api.datasets.create({ name });
  for (const [input, expectedOutput] of [["France", "Paris"], ["Spain", "Madrid"]]) {
    await langfuse.api.datasetItems.create({ datasetName: name, input, expectedOutput });
  }
  const dataset = await langfuse.dataset.get(name);
  same(dataset.items.map((item) => item.expectedOutput).sort(), ["Madrid", "Paris"], "the items");
  const runName = `run-js ${run}`;
  const result = await dataset.runExperiment({
    name: "capitals",
    runName,
    task: async ({ input }) => (input === "France" ? "Paris" : "Lisbon"),
    evaluators: [async ({ output, expectedOutput }) => ({ name: "exact", value: output === expectedOutput ? 1 : 0 })],
  });
  same(result.itemResults.length, 2, "the items of a run");
  await processor.forceFlush();
  await langfuse.flush();
  const found = await langfuse.api.datasets.getRun(name, runName);
  same(found.datasetRunItems.length, 2, "the run");
  const rows = await ours(`select: * | from: experiment('${found.id}')`);
  same(rows.map((row) => [row.output, row.expected, row.scores.exact]).sort(), [["Lisbon", "Madrid", 0], ["Paris", "Paris", 1]], "the experiment");
}

await tracing();
await prompts();
await datasets();
await processor.shutdown();
