// A dataset of more records than one page and one request hold: versions, updates, deletes, snapshots, and what was brought back.

import { init, initDataset } from "braintrust";
import { URL, all, ask, read, same } from "./reading.mjs";

const RECORDS = 1_500;
const project = `javascript-dataset-${process.argv[2]}`;
const opened = (more = {}) => initDataset(project, { dataset: "large", ...more });
const byId = (rows) => {
  const found = Object.fromEntries(rows.map((row) => [row.id, row]));
  same("each once", Object.keys(found).length, rows.length);
  return found;
};
const numbers = Array.from({ length: RECORDS }, (_, i) => i);

const dataset = opened({ description: "d", metadata: { records: RECORDS } });
same("an empty one", await all(dataset), []);
for (const i of numbers) {
  dataset.insert({ id: `r${i}`, input: { i }, expected: i % 7, metadata: { kind: { even: i % 2 === 0 } }, tags: ["made", `mod-${i % 3}`] });
}
const summary = await dataset.summarize();
same("records", [summary.datasetName, summary.dataSummary.totalRecords], ["large", RECORDS]);
same("its address", summary.datasetUrl, `${URL}/app/default/p/${project}/datasets/large`);

function isAsMade(rows) {
  same("ids", Object.keys(rows).length, RECORDS);
  for (const i of numbers) {
    const { input, expected, tags, metadata } = rows[`r${i}`];
    same(`record ${i}`, { input, expected, tags, metadata }, { input: { i }, expected: i % 7, tags: ["made", `mod-${i % 3}`], metadata: { kind: { even: i % 2 === 0 } } });
  }
}
isAsMade(byId(await all(opened())));
isAsMade(byId(await all(opened().fetch({ batchSize: 400 }))));
const made = await opened().version();
same("its form", /^1\d{18}$/.test(made), true);
const snapshot = await dataset.createSnapshot({ name: "as made", description: "s" });
same("snapshot", [snapshot.name, snapshot.description, snapshot.dataset_id], ["as made", "s", await dataset.id]);
same("of what there is", snapshot.xact_id >= made, true);

for (const i of numbers.filter((i) => i % 5 === 0)) {
  dataset.update({ id: `r${i}`, expected: { was: i % 7 }, metadata: { kind: { updated: true } }, tags: ["updated"] });
}
for (const i of numbers.filter((i) => i % 10 === 9)) dataset.delete(`r${i}`);
await dataset.flush();
dataset.insert({ id: "r9", input: "anew" });
await dataset.flush();
const now = byId(await all(opened()));
const left = numbers.filter((i) => i % 10 !== 9 || i === 9);
same("now", Object.keys(now).sort(), left.map((i) => `r${i}`).sort());
for (const i of left.filter((i) => i !== 9)) {
  const { expected, metadata, tags } = now[`r${i}`];
  const updated = i % 5 === 0;
  same(`record ${i}`, [expected, metadata.kind.updated ?? false, metadata.kind.even], [updated ? { was: i % 7 } : i % 7, updated, i % 2 === 0]);
  same(`its tags ${i}`, tags, ["made", `mod-${i % 3}`, ...(updated ? ["updated"] : [])]);
}
same("anew", [now.r9.input, now.r9.expected ?? null, now.r9.metadata ?? null], ["anew", null, null]);
same("over HTTP", Object.keys(await read("dataset", await dataset.id, { limit: 700 })).sort(), Object.keys(now).sort());
same("a later version", (await opened().version()) > made, true);

// As it was: by its version, by the snapshot's name, and as an environment has it.
isAsMade(byId(await all(opened({ version: made }))));
isAsMade(byId(await all(opened({ snapshotName: "as made" }))));
await ask("POST", "/environment", { name: project, slug: project });
await ask("PUT", `/environment-object/dataset/${await dataset.id}/${project}`, { object_version: made });
isAsMade(byId(await all(opened({ environment: project }))));

const later = await dataset.createSnapshot({ name: "later" });
same("snapshots", (await dataset.listSnapshots()).map((one) => one.name).sort(), ["as made", "later"]);
same("found", (await dataset.getSnapshot({ snapshotName: "later" })).id, later.id);
same("renamed", (await dataset.updateSnapshot(later.id, { name: "latest", description: null })).name, "latest");
await dataset.deleteSnapshot(later.id);
same("snapshots", (await dataset.listSnapshots()).map((one) => one.id), [snapshot.id]);

// Brought back: every record that was changed or deleted is as it was.
const changed = numbers.filter((i) => i % 5 === 0 || i % 10 === 9).length;
same("preview", await dataset.restorePreview({ version: made }), { rows_to_restore: changed, rows_to_delete: 0 });
const restored = await dataset.restore({ version: made });
same("restored", [restored.rows_restored, restored.rows_deleted, restored.xact_id > made], [changed, 0, true]);
isAsMade(byId(await all(opened())));
same("the version between is still there", Object.keys(byId(await all(opened({ version: now.r9._xact_id })))).length, left.length);

// An experiment over it, opened to read, and as a dataset.
const experiment = init(project, { experiment: "over", dataset: opened({ version: made }) });
for (let i = 0; i < 1_100; i += 1) {
  const span = experiment.startSpan({ name: "case", event: { id: `case-${i}`, input: { i }, metadata: { i }, tags: ["t"] } });
  span.log({ output: i * 2, ...(i % 2 ? { expected: i } : {}) });
  if (i < 100) span.startSpan({ name: "below" }).end();
  span.end();
}
await experiment.flush();
const record = await ask("GET", `/v1/experiment/${await experiment.id}`);
same("the dataset's version", [record.dataset_id, record.dataset_version], [await dataset.id, made]);
const reading = init(project, { experiment: "over", open: true });
same("its rows", (await all(reading)).length, 1_200);
const cases = (await all(init(project, { experiment: "over", open: true }).asDataset())).sort((a, b) => a.metadata.i - b.metadata.i);
same("cases", cases.length, 1_100);
for (const [i, { input, expected, tags, metadata }] of cases.entries()) {
  same(`case ${i}`, [input, expected, tags, metadata], [{ i }, i % 2 ? i : i * 2, ["t"], { i }]);
}
console.log("dataset: ok");
