// Feedback and comments: on spans that nobody has sent yet, in one flush with them, long behind them, and all of it sent again.

import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { init, initLogger } from "braintrust";
import { ask, comments, read, same } from "./reading.mjs";

// The SDK keeps what it sends there.
const payloads = "payloads";
mkdirSync(payloads);
process.env.BRAINTRUST_ALL_PUBLISH_PAYLOADS_DIR = payloads;

const projectName = `javascript-feedback-${process.argv[2]}`;
const logger = initLogger({ projectName });
const sent = [];

/** In the order of flushes: what went out in this one. */
async function flush(of = logger) {
  await of.flush();
  const known = sent.flat();
  // payload_<when, as a number>_<anything>.json
  const when = (name) => Number(name.split("_")[1]);
  sent.push(readdirSync(payloads).filter((name) => !known.includes(name)).sort((a, b) => when(a) - when(b)));
}

function span(name, event) {
  const made = logger.startSpan({ name, event: { id: `${projectName}-${name}`, ...event } });
  made.log({ output: `of ${name}`, scores: { own: 1 }, tags: ["own"] });
  made.end();
}
const feedback = (name, given) => logger.logFeedback({ id: `${projectName}-${name}`, ...given });

// Early: what replaces a row whole replaces scores too, and comments stay.
feedback("early", { comment: "early one", metadata: { who: "ann" }, source: "app" });
feedback("early", { comment: "early two", scores: { human: 0.5 }, expected: "lost", tags: ["lost"] });
await flush();
span("early", { input: "i" });
await flush();

// With it: one row carries both.
span("with", { input: "i", metadata: { own: true } });
feedback("with", { scores: { human: 0.25, own: 0 }, expected: "e", tags: ["human"], comment: "with it", metadata: { who: "bob" } });
await flush();

// Late: again and again, each in a flush of its own.
span("late", { input: "i", metadata: { own: true } });
await flush();
for (let i = 0; i < 4; i += 1) {
  const expected = { round: i, [`round-${i}`]: true };
  feedback("late", { scores: { human: i / 4, [`human-${i}`]: 1 }, expected, tags: [`round-${i}`], comment: `late ${i}`, metadata: { round: i }, source: "api" });
  await flush();
}
feedback("late", { comment: "only a comment" });
await flush();

// On a span that never comes: what it says is a row, and a comment on nothing is none.
feedback("never", { scores: { human: 1 } });
feedback("nowhere", { comment: "on nothing" });
await flush();

// In an experiment.
const experiment = init(projectName, { experiment: "e", setCurrent: false });
experiment.logFeedback({ id: "case", comment: "early" });
await flush(experiment);
experiment.log({ id: "case", input: 1, output: 2, scores: { own: 0 } });
await flush(experiment);
experiment.logFeedback({ id: "case", comment: "late \u{1f642}", scores: { more: 0.75 }, metadata: { who: "ann" } });
await flush(experiment);

const projectId = (await logger.project).id;
async function everything() {
  const rows = await read("project_logs", projectId);
  const own = Object.fromEntries(Object.entries(rows).map(([id, row]) => [id.replace(`${projectName}-`, ""), row]));
  return { ...own, ...(await read("experiment", await experiment.id)) };
}

function isRight(rows) {
  same("rows", Object.keys(rows).sort(), ["case", "early", "late", "never", "with"]);
  let row = rows.early;
  same("early", [row.input, row.output, comments(row)], ["i", "of early", ["early one", "early two"]]);
  same("replaced", [row.scores, row.expected ?? null, row.tags], [{ own: 1 }, null, ["own"]]);
  row = rows.with;
  same("with", [row.input, row.output, comments(row)], ["i", "of with", ["with it"]]);
  same("with", [row.scores, row.expected, row.tags], [{ own: 0, human: 0.25 }, "e", ["own", "human"]]);
  row = rows.late;
  const rounds = [0, 1, 2, 3];
  same("late", [row.output, comments(row)], ["of late", [...rounds.map((i) => `late ${i}`), "only a comment"]]);
  same("late", row.scores, { own: 1, human: 0.75, ...Object.fromEntries(rounds.map((i) => [`human-${i}`, 1])) });
  same("late", row.expected, { round: 3, ...Object.fromEntries(rounds.map((i) => [`round-${i}`, true])) });
  same("late", row.tags, ["own", ...rounds.map((i) => `round-${i}`)]);
  for (const name of ["with", "late"]) same("the metadata of feedback is not its row's", rows[name].metadata, { own: true });
  same("never", [rows.never.scores, rows.never.input ?? null, comments(rows.never)], [{ human: 1 }, null, []]);
  row = rows.case;
  same("case", [row.output, row.scores, comments(row)], [2, { own: 0, more: 0.75 }, ["early", "late \u{1f642}"]]);
}

const before = await everything();
isRight(before);

// Everything is sent again, as a client does that did not hear the answer: each flush twice, in its order.
same("all of it was kept", [sent.length, sent.every((files) => files.length > 0)], [13, true]);
for (const files of sent) {
  for (const name of [...files, ...files]) await ask("POST", "/logs3", readFileSync(join(payloads, name), "utf8"));
}
const after = await everything();
isRight(after);
const fields = ({ _xact_id, audit_data, comments, ...others }) => others;
const ids = (row) => (row.comments ?? []).map((comment) => comment.id).sort();
for (const [name, row] of Object.entries(before)) {
  same(`${name} as it was`, fields(after[name]), fields(row));
  same("the same comments", ids(after[name]), ids(row));
}
console.log("feedback: ok");
