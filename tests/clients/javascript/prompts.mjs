// Prompts: pushed, changed, and loaded by slug, by id, at a version and as an environment has them.

import assert from "node:assert/strict";
import { getPromptVersions, initLogger, loadPrompt, projects } from "braintrust";
import { ask, read, same } from "./reading.mjs";

const projectName = `javascript-prompts-${process.argv[2]}`;

async function push(text, more = {}) {
  const project = projects.create({ name: projectName });
  const messages = [
    { role: "system", content: text },
    { role: "user", content: "I am {{name}}, {{{raw}}}" },
  ];
  const params = { temperature: 0.25, max_tokens: 7 };
  project.prompts.create({ name: "Greeting", slug: "greeting", messages, model: "m-1", params, ...more });
  await project.publish();
}

const loaded = (more = {}) => loadPrompt(more.id ? more : { projectName, slug: "greeting", ...more });
const built = (prompt) => prompt.build({ name: "Ann", raw: "<b>" });
const says = (prompt) => built(prompt).messages[0].content;
const pretty = (version) => ((BigInt(version) * 205891132094649n) % 2n ** 64n).toString(16).padStart(16, "0");

await push("one", { description: "d", metadata: { m: { a: 1 } }, tags: ["t"] });
const first = await loaded();
same("its fields", [first.name, first.slug], ["Greeting", "greeting"]);
same("built", built(first).messages, [{ role: "system", content: "one" }, { role: "user", content: "I am Ann, <b>" }]);
same("its options", [built(first).model, built(first).temperature, built(first).max_tokens], ["m-1", 0.25, 7]);
same("where it is from", built(first).span_info.metadata.prompt.id, first.id);
same("its version", /^1\d{18}$/.test(first.version), true);

// Pushed again: refused, left as it is, or replaced.
await assert.rejects(push("refused", { ifExists: "error" }), /greeting/);
same("after a refusal", [says(await loaded()), (await loaded()).version], ["one", first.version]);
await push("ignored", { ifExists: "ignore" });
same("ignored", [says(await loaded()), (await loaded()).version], ["one", first.version]);
await push("two", { ifExists: "replace" });
const second = await loaded();
same("replaced", [says(second), second.id, second.version > first.version], ["two", first.id, true]);
await ask("PATCH", `/v1/prompt/${first.id}`, { prompt_data: { prompt: { type: "completion", content: "three {{name}}" }, options: { model: "m-3" } } });
const third = await loaded();
const completion = third.build({ name: "Ann" }, { flavor: "completion" });
same("patched", [completion.prompt, completion.model, third.version > second.version], ["three Ann", "m-3", true]);

// Each version, by slug and by id, and by the shorter form of its number.
for (const [prompt, text] of [[first, "one"], [second, "two"]]) {
  for (const version of [prompt.version, pretty(prompt.version)]) {
    for (const by of [{}, { id: first.id }]) {
      const found = await loaded({ version, ...by });
      same(`at ${version}`, [says(found), found.version], [text, prompt.version]);
    }
  }
}
same("by id", (await loaded({ id: first.id })).version, third.version);
const { id: projectId } = await ask("POST", "/v1/project", { name: projectName });
const versions = await getPromptVersions(projectId, first.id);
same("its versions", versions.sort(), [first, second, third].map((prompt) => pretty(prompt.version)).sort());

// As environments have it: each its own version, moved to another one.
const place = (name) => `/environment-object/prompt/${first.id}/${projectName}-${name}`;
for (const [name, prompt, text] of [["production", first, "one"], ["staging", second, "two"]]) {
  await ask("POST", "/environment", { name, slug: `${projectName}-${name}` });
  await ask("PUT", place(name), { object_version: prompt.version });
  for (const by of [{}, { id: first.id }]) {
    const found = await loaded({ environment: `${projectName}-${name}`, ...by });
    same(`in ${name}`, [says(found), found.version], [text, prompt.version]);
  }
}
await ask("PUT", place("production"), { object_version: second.version });
same("moved", (await loaded({ environment: `${projectName}-production` })).version, second.version);
// A version comes before an environment.
same("both", (await loaded({ environment: `${projectName}-staging`, version: first.version })).version, first.version);

// What is not there is said to be not there, and not a failing of the server.
for (const missing of [{ slug: "none" }, { environment: `${projectName}-none` }, { version: "1000000000000000001" }]) {
  const message = `Prompt ${missing.slug ?? "greeting"} not found in ${projectName}`;
  await assert.rejects(loaded(missing), { message });
}

// Under a logger a span carries which prompt was used.
const logger = initLogger({ projectName });
const span = logger.startSpan({ name: "asked" });
span.log(built(second).span_info);
span.end();
await logger.flush();
const [row] = Object.values(await read("project_logs", projectId));
same("the prompt of a span", [row.metadata.prompt.id, row.metadata.prompt.version], [first.id, second.version]);
console.log("prompts: ok");
