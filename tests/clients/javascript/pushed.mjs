// Functions that were pushed, invoked by the SDK: whole, streamed below a live span, and the spans that they leave.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { initLogger, invoke, loadParameters } from "braintrust";
import { ask, read, same } from "./reading.mjs";

// Polls until the server has written what it logs behind an answer.
const POLLS_MAX = 1200;
const POLL_MS = 50;
const projectName = process.env.ASSAY_PROJECT;
// Language of the functions, in whichever language this script is.
const language = process.env.ASSAY_LANGUAGE;
const table = process.env.ASSAY_CASES;

/** A case with the names of this run. */
function filled(value, projectId, root) {
  if (value === "$project") return projectName;
  if (value === "$trace") return { trace_ref: { object_type: "project_logs", object_id: projectId, root_span_id: root } };
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, filled(member, projectId, root)]));
}

const invoked = ({ slug, input }, more) => invoke({ projectName, slug, input, ...more });

async function whole(one) {
  const nothing = { export: async () => "" };
  if ("value" in one) {
    same(one.slug, await invoked(one, { parent: nothing }), one.value);
    return;
  }
  await assert.rejects(invoked(one, { parent: nothing }), ({ status, data }) => {
    same(`${one.slug}: ${data}`, status, one.refused ?? 500);
    if (one.refused) {
      assert.ok(data.includes(one.says), data);
      return true;
    }
    const { FunctionError: found, Message: message } = JSON.parse(data);
    same(one.slug, { name: found.name, message: found.message }, one.error);
    same(one.slug, message.split("\n")[0], one.error.message);
    assert.ok(found.stack.split("\n").length > 1 && !/assay_|worker/.test(found.stack), found.stack);
    return true;
  });
}

async function chunks(stream) {
  const found = [];
  const reader = stream.copy().toReadableStream().getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) found.push(next.value);
  return found;
}

/** Invokes a case below the live span. */
async function streamed(one, place) {
  const what = `${one.slug}, streamed`;
  let pieces;
  let value;
  try {
    const stream = await invoked(one, { stream: true, tags: [tag(place)] });
    pieces = await chunks(stream);
    value = await stream.finalValue();
  } catch (error) {
    if (one.refused) same(what, error.status, one.refused);
    else assert.ok(one.error && `${error} ${error.data}`.includes(one.error.message), `${what}: ${error} ${error.data}`);
    return;
  }
  same(what, value, one.value);
  const said = pieces.filter(({ type }) => type === "console").map(({ data }) => [data.stream, data.message]);
  for (const name of ["stdout", "stderr"]) {
    const of = (lines) => lines.filter(([stream]) => stream === name);
    same(`${what}: ${name}`, of(said), of(one.console ?? []));
  }
}

/** Tag by which the span of a case is found. */
const tag = (place) => `case-${place}`;

/** Names of all spans below a row. */
function descendants(rows, row) {
  const children = Object.values(rows).filter((child) => child.span_parents?.[0] === row.span_id);
  for (const child of children) same("the trace", child.root_span_id, row.root_span_id);
  return children.flatMap((child) => [child.span_attributes.name, ...descendants(rows, child)]).sort();
}

async function checkRows(cases, projectId, request) {
  const wanted = cases.map((one, place) => [place, one]).filter(([, one]) => !one.refused);
  let rows = {};
  let own = {};
  for (let poll = 0; poll < POLLS_MAX; poll += 1) {
    const all = Object.entries(await read("project_logs", projectId));
    rows = Object.fromEntries(all.filter(([, row]) => row.root_span_id === request.rootSpanId));
    const below = Object.values(rows).filter((row) => row.span_parents?.[0] === request.spanId);
    const tagged = Object.fromEntries(below.map((row) => [row.tags?.[0], row]));
    own = Object.fromEntries(wanted.map(([place]) => [place, tagged[tag(place)]]).filter(([, row]) => row));
    const isThere = ([place, { spans = [] }]) =>
      own[place] && JSON.stringify(descendants(rows, own[place])) === JSON.stringify(spans);
    if (wanted.every(isThere) && Object.values(rows).every((row) => row.metrics.end)) break;
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
  same("functions below the span", Object.keys(own), wanted.map(([place]) => String(place)));
  for (const [place, one] of wanted) {
    const row = own[place];
    const what = `the span of ${one.slug}`;
    same(what, [row.span_attributes.name, row.span_attributes.type], [one.name, one.type]);
    same(what, descendants(rows, row), one.spans ?? []);
    same(what, row.scores ?? {}, one.scores ?? {});
    if ("value" in one) same(what, [row.output, row.error ?? null], [one.value, null]);
    else assert.ok(JSON.stringify(row.error).includes(one.error.message), JSON.stringify(row.error));
  }
}

const logger = initLogger({ projectName });
const { id: projectId } = await ask("POST", "/v1/project", { name: projectName });
const { both, [language]: more } = JSON.parse(await readFile(table, "utf8"));
let cases = [];
const request = await logger.traced(
  async (span) => {
    await span.traced(async (said) => said.log({ input: "say", output: "said" }), { name: "said", spanAttributes: { type: "llm" } });
    await logger.flush();
    cases = [...both, ...more].map((one) => filled(one, projectId, span.rootSpanId));
    for (const [place, one] of cases.entries()) {
      await whole(one);
      await streamed(one, place);
    }
    return span;
  },
  { name: "request" },
);
await logger.flush();
await checkRows(cases, projectId, request);
const knobs = await loadParameters({ projectName, slug: "knobs" });
same("knobs", knobs.data.model, "scripted");
same("knobs", knobs.schema.properties.model["x-bt-type"], "model");
console.log("pushed: ok");
