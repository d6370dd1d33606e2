// A dataset: rows inserted, updated and deleted, read by iteration, by its id, at a snapshot, and taken back to it.

import assert from "node:assert/strict";
import * as braintrust from "braintrust";
import { all, run } from "./reading.mjs";

const project = `javascript-dataset-${run}`;
const ids = async (dataset) => (await all(dataset)).map((row) => row.id).sort();
const open = (more) => braintrust.initDataset({ project, dataset: "questions", ...more });

const dataset = open();
for (let i = 0; i < 1100; i++) dataset.insert({ id: `q${i}`, input: { i }, expected: i, metadata: { n: { i } } });
await dataset.flush();
assert.equal((await ids(dataset)).length, 1100);
const first = await dataset.createSnapshot({ name: "first", description: "d" });
assert.deepEqual([first.name, first.description, first.dataset_id], ["first", "d", await dataset.id]);
dataset.insert({ id: "late", input: 9, expected: 9 });
dataset.update({ id: "q1", metadata: { n: { j: 1 } } });
dataset.delete("q0");
await dataset.flush();

const now = await all(open());
assert.equal(now.length, 1100);
assert.ok(now.some((row) => row.id === "late") && !now.some((row) => row.id === "q0"));
assert.deepEqual(now.find((row) => row.id === "q1").metadata, { n: { i: 1, j: 1 } });
const then = await all(open({ snapshotName: "first" }));
assert.ok(then.some((row) => row.id === "q0") && !then.some((row) => row.id === "late"));
assert.deepEqual(then.find((row) => row.id === "q1").metadata, { n: { i: 1 } });

assert.deepEqual((await dataset.listSnapshots()).map((one) => one.id), [first.id]);
assert.equal((await dataset.getSnapshot({ snapshotName: "first" })).id, first.id);
assert.equal((await dataset.updateSnapshot(first.id, { name: "renamed" })).name, "renamed");
assert.deepEqual(await dataset.restorePreview({ version: first.xact_id }), { rows_to_restore: 2, rows_to_delete: 1 });
const restored = await dataset.restore({ version: first.xact_id });
assert.deepEqual([restored.rows_restored, restored.rows_deleted], [2, 1]);
assert.deepEqual(await ids(open()), then.map((row) => row.id).sort());
await dataset.deleteSnapshot(first.id);
assert.deepEqual(await dataset.listSnapshots(), []);

const byId = braintrust.initDataset({ datasetId: await dataset.id });
assert.equal(await byId.name, "questions");
assert.equal((await dataset.summarize()).datasetName, "questions");
assert.equal((await dataset.summarize()).dataSummary?.totalRecords ?? 1100, 1100);
console.log("dataset: ok");
