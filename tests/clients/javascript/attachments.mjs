// Attachments, and rows too large for one request.

import assert from "node:assert/strict";
import * as braintrust from "braintrust";
import { ask, read as rows } from "./reading.mjs";

const project = `javascript-attachments-${process.argv[2]}`;
const logger = braintrust.initLogger({ projectName: project });
const bytes = Buffer.from(Array.from({ length: 700_000 }, (_, at) => at % 251));
const attachment = (data, filename) => new braintrust.Attachment({ data: new Blob([data]), filename, contentType: "application/octet-stream" });
logger.log({ id: "files", input: { large: attachment(bytes, "large.bin") }, output: [attachment("small", "small ü.txt")] });
const huge = "ü".repeat(4 << 20);
logger.log({ id: "huge", input: huge });
await logger.flush();

const { id } = (await ask("GET", `/v1/project?project_name=${project}`)).objects[0];
const row = (await rows("project_logs", id)).files;
const read = async (reference) => {
  const file = new braintrust.ReadonlyAttachment(reference);
  assert.equal((await file.status()).upload_status, "done");
  return Buffer.from(await (await file.data()).arrayBuffer());
};
assert.equal(row.input.large.type, "braintrust_attachment");
assert.deepEqual(await read(row.input.large), bytes);
assert.equal((await read(row.output[0])).toString(), "small");
assert.equal(row.output[0].filename, "small ü.txt");
const query = `select: id, input | from: project_logs('${id}') | filter: id = 'huge'`;
assert.equal((await ask("POST", "/btql", { query })).data[0].input, huge);
console.log("attachments: ok");
