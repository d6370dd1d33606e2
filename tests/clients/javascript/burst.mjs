// A burst of large spans, as a program logs that has collected them: every row arrives, though more comes at once than is written at once.
// ASSAY_BURSTS names them as `count x bytes`.

import { randomBytes } from "node:crypto";
import { flush, initLogger } from "braintrust";
import { ask, same } from "./reading.mjs";

const [run] = process.argv.slice(2);
const bursts = (process.env.ASSAY_BURSTS ?? "16x1048576,200x102400").split(",").map((each) => each.split("x").map(Number));

for (const [count, size] of bursts) {
  const logger = initLogger({ projectName: `javascript-burst-${run}-${count}x${size}` });
  // No text compresses, and no two are alike.
  const texts = Array.from({ length: count }, () => randomBytes(Math.floor((size * 3) / 4)).toString("base64"));
  const began = Date.now();
  for (const [n, text] of texts.entries()) logger.log({ input: text, metadata: { n, end: text.slice(-16) } });
  await flush();
  const took = Date.now() - began;
  const { id } = await logger.project;
  const query = `SELECT metadata, length(input) AS size FROM project_logs('${id}') LIMIT ${count + 10}`;
  const { data } = await ask("POST", "/btql", { query });
  const arrived = data.map((row) => [row.metadata.n, row.metadata.end, row.size]).sort(([a], [b]) => a - b);
  const there = new Set(arrived.map(([n]) => n));
  same(`${count} of ${size} bytes: lost after ${took} ms`, texts.map((_, n) => n).filter((n) => !there.has(n)), []);
  same(`${count} of ${size} bytes`, arrived, texts.map((text, n) => [n, text.slice(-16), text.length]));
  console.log(`burst: ${count} of ${size} bytes in ${took} ms`);
}
console.log("burst: ok");
