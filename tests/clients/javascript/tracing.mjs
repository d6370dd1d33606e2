// A trace through several processes: each goes on below what the one before handed over, as a slug of either form or as headers.

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { extractTraceContextFromHeaders, flush, init, initLogger, login, startSpan, updateSpan } from "braintrust";
import { below, named, read, same } from "./reading.mjs";

const own = fileURLToPath(import.meta.url);
// Programs that go on with a trace: this one, and its sibling in Python where the test has it.
const PROGRAMS = { javascript: [process.execPath, own] };
if (process.env.ASSAY_PYTHON) PROGRAMS.python = JSON.parse(process.env.ASSAY_PYTHON);
// Ids and slugs of the third version, and of the fourth.
const FORMS = { v3: { BRAINTRUST_LEGACY_IDS: "true" }, v4: {} };
const VERSION = { v3: "Aw", v4: "BA" };
// The SDK for Python writes the hexadecimal id of a trace into a slug of the third version as a UUID, which this one does not read.
const LOSSY = "v4-v3";

function run([program, ...before], words, environment) {
  const { BRAINTRUST_LEGACY_IDS, ...env } = process.env;
  const said = execFileSync(program, [...before, ...words], { env: { ...env, ...environment }, encoding: "utf8", timeout: 300_000 });
  return JSON.parse(said.trim().split("\n").at(-1));
}

/** What every program does with what it was handed: a span below it, one below that, and it hands that over. */
async function goOn(name, handed) {
  const parent = typeof handed === "string" ? handed : extractTraceContextFromHeaders(handed);
  const span = startSpan({ name, parent, event: { input: { by: name } } });
  const inner = span.startSpan({ name: `${name}-below` });
  inner.log({ output: "there" });
  inner.end();
  span.end();
  return { slug: await inner.export(), headers: inner.inject({}) };
}

/** What another process hands over in its turn, by the names of its spans. */
const handedOver = (program, form, handed) => run(PROGRAMS[program], ["go-on", JSON.stringify(handed)], FORMS[form]);

async function begin(form, projectName) {
  const logger = initLogger({ projectName });
  // The slug of what has no id yet names it.
  const byName = await logger.export();
  const loggerId = (await logger.project).id;
  const experiment = init(projectName, { experiment: form, setCurrent: false });
  for (const program of Object.keys(PROGRAMS)) {
    for (const other of Object.keys(FORMS)) {
      const kind = `${form}-${program}-${other}`;
      const start = experiment.startSpan({ name: `${kind}-case`, event: { input: kind } });
      const root = logger.startSpan({ name: `${kind}-root`, propagatedEvent: { metadata: { propagated: kind } } });
      await flush();
      const slug = await root.export();
      same("the form of its slug", slug.slice(0, 2), VERSION[form]);
      const handed = { second: slug, within: await start.export(), "by-name": byName, "by-object": await experiment.export() };
      const told = handedOver(program, other, Object.fromEntries(Object.entries(handed).map(([name, slug]) => [`${kind}-${name}`, slug])));
      const back = told[`${kind}-second`].slug;
      same("the form of theirs", back.slice(0, 2), VERSION[other]);
      // And back.
      if (`${form}-${other}` !== LOSSY) {
        const third = startSpan({ name: `${kind}-third`, parent: back });
        third.log({ output: "back" });
        third.end();
        updateSpan({ exported: back, metadata: { updated: "from the first" } });
      }
      root.end();
      start.end();
    }
    if (form === "v4") {
      const root = logger.startSpan({ name: `${program}-headers` });
      const headers = root.inject({});
      same("traceparent", headers.traceparent.split("-").slice(1, 3), [root.rootSpanId, root.spanId]);
      const told = handedOver(program, "v4", { [`${program}-served`]: headers });
      const parent = extractTraceContextFromHeaders(told[`${program}-served`].headers);
      startSpan({ name: `${program}-back`, parent }).end();
      root.end();
    }
  }
  await flush();
  return { logger: loggerId, experiment: await experiment.id };
}

const root = (row) => same(`${row.span_attributes.name} is a root`, [row.is_root, row.span_parents], [true, null]);

async function judge(projectName) {
  const begun = Object.fromEntries(Object.keys(FORMS).map((form) => [form, run([process.execPath, own], ["begin", form, projectName], FORMS[form])]));
  same("one project", begun.v3.logger, begun.v4.logger);
  const rows = named(await read("project_logs", begun.v3.logger));
  const programs = Object.keys(PROGRAMS);
  same("spans", Object.keys(rows).length, programs.length * (4 * (4 + 2) - 1 + 4));
  for (const form of Object.keys(FORMS)) {
    const cases = named(await read("experiment", begun[form].experiment));
    same("cases", Object.keys(cases).length, programs.length * 2 * 5);
    for (const kind of programs.flatMap((program) => Object.keys(FORMS).map((other) => `${form}-${program}-${other}`))) {
      const lossy = kind.startsWith("v4") && kind.endsWith("v3");
      const trace = ["root", "second", "second-below", "third"].slice(0, lossy ? 3 : 4).map((name) => rows[`${kind}-${name}`]);
      root(trace[0]);
      trace.slice(1).forEach((row, place) => below(row, trace[place]));
      for (const row of trace) same("propagated", row.metadata.propagated, kind);
      same("input and output", [trace[1].input, trace[2].output], [{ by: `${kind}-second` }, "there"]);
      same("back", trace.slice(3).map((row) => row.output), lossy ? [] : ["back"]);
      same("updated", trace[2].metadata, { propagated: kind, ...(lossy ? {} : { updated: "from the first" }) });
      root(cases[`${kind}-case`]);
      below(cases[`${kind}-within`], cases[`${kind}-case`]);
      below(cases[`${kind}-within-below`], cases[`${kind}-within`]);
      for (const [place, name] of [[rows, `${kind}-by-name`], [cases, `${kind}-by-object`]]) {
        root(place[name]);
        below(place[`${name}-below`], place[name]);
      }
    }
  }
  for (const program of programs) {
    const trace = ["headers", "served", "served-below", "back"].map((name) => rows[`${program}-${name}`]);
    root(trace[0]);
    trace.slice(1).forEach((row, place) => below(row, trace[place]));
  }
}

const [what, ...words] = process.argv.slice(2);
if (what === "go-on") {
  await login();
  const told = {};
  for (const [name, handed] of Object.entries(JSON.parse(words[0]))) told[name] = await goOn(name, handed);
  await flush();
  console.log(JSON.stringify(told));
} else if (what === "begin") {
  console.log(JSON.stringify(await begin(...words)));
} else {
  await judge(`javascript-tracing-${what}`);
  console.log("tracing: ok");
}
