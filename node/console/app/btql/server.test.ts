// Compares the writers with a server, if the environment names one: ASSAY_URL and ASSAY_API_KEY. With WRITE_CASES, the
// filters of the language's own cases are written to cases.jsonl as that server reads them.
import { readFileSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { chipsOf, textOfChips, textOfCondition, treeOfCondition } from "./chips";
import { condition } from "./edit";
import { isTree } from "./tree";
import { literal, path } from "./write";

const url = process.env["ASSAY_URL"] ?? "";
const key = process.env["ASSAY_API_KEY"] ?? "";

const HOSTILE = ["'", "''", "\\", "\\'", "a' OR 1=1 --", "`", "``", '"', "a\nb", "--", "/*", "*/", "%", "_", "‮", "größe", "", " ", "and", "null", "a.b", "a[0]", "$x", "1", "😀", "\\n", "''; drop", "x'||'y"];

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null;

async function post(address: string, body: unknown): Promise<Fields> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + address, { method: "POST", headers, body: JSON.stringify(body) });
  const answer: unknown = await response.json();
  if (!response.ok || !isFields(answer)) throw new Error(`${address}: ${response.status} ${JSON.stringify(answer)} for ${JSON.stringify(body)}`);
  return answer;
}

const parse = (body: unknown): Promise<Fields> => post("/console/parse", body);

const strings = fc.oneof(fc.string({ unit: "binary", maxLength: 12 }), fc.constantFrom(...HOSTILE));

test.skipIf(url === "")("what is written is read as it was meant", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(strings, { minLength: 1, maxLength: 3 }), strings, async (keys, value) => {
      const one = condition(["metadata", ...keys], "eq", value);
      const answer = await parse({ expression: textOfCondition(one) });
      expect(answer["tree"]).toEqual(treeOfCondition(one));
    }),
    { numRuns: 400 },
  );
}, 60_000);

test.skipIf(url === "")("columns of any name", async () => {
  for (const name of HOSTILE) {
    const answer = await parse({ expression: `${path([name])} IS NULL` });
    expect(answer["tree"]).toMatchObject({ op: "isnull", expr: { op: "ident", name: [name] } });
  }
});

test.skipIf(url === "")("hostile values and keys find their own row and no other", async () => {
  const project = await post("/v1/project", { name: `hostile-${Date.now()}` });
  const events = HOSTILE.flatMap((text, index) => [
    { id: `v${index}`, metadata: { value: text } },
    { id: `k${index}`, metadata: { keys: { [text]: "here" } } },
  ]);
  await post(`/v1/project_logs/${String(project["id"])}/insert`, { events });
  const idsOf = async (filter: string): Promise<unknown> => {
    const from = { op: "function", name: { op: "ident", name: ["project_logs"] }, args: [{ op: "literal", value: project["id"] }] };
    const select = [{ alias: "id", expr: { op: "ident", name: ["id"] } }];
    const answer = await post("/btql", { query: { select, from, filter: [{ btql: filter }] } });
    return Array.isArray(answer["data"]) ? answer["data"].map((row: Fields) => row["id"]) : null;
  };
  for (const [index, text] of HOSTILE.entries()) {
    expect(await idsOf(`${path(["metadata", "value"])} = ${literal(text)}`)).toEqual([`v${index}`]);
    expect(await idsOf(`${path(["metadata", "keys", text])} = 'here'`)).toEqual([`k${index}`]);
  }
}, 60_000);

interface Read {
  readonly case: string;
  readonly text: string;
  readonly tree: unknown;
}

/** The filter of a case as the server reads it, or null if the case has none or is wrong on purpose. */
async function filterOf(line: string): Promise<Read | null> {
  const one: unknown = JSON.parse(line);
  if (!isFields(one)) return null;
  const { about, expr, query } = one;
  if (typeof about !== "string") return null;
  const label = JSON.stringify(about).slice(1, -1);
  if (typeof expr === "string") {
    const { expression: text, tree } = await parse({ expression: expr });
    return typeof text === "string" ? { case: label, text, tree } : null;
  }
  const source = "project_logs('P1'";
  const asked = typeof query === "string" ? query.replaceAll("⏎", "\n").replaceAll("$L", `${source})`).replaceAll("$S", `${source}, shape => 'summary')`).replaceAll("$T", `${source}, shape => 'traces')`) : null;
  const read = asked === null ? query : (await parse({ query: asked }))["tree"];
  const filter = isFields(read) ? read["filter"] : null;
  if (!isTree(filter)) return null;
  const { expression: text, tree } = await parse({ tree: filter });
  return typeof text === "string" ? { case: label, text, tree } : null;
}

test.skipIf(url === "")("the cases of the language: text, chips, and text again are read alike", async () => {
  const names = ["examples", "decisions"];
  const lines = names.flatMap((name) => readFileSync(new URL(`../../../../tests/btql/cases/${name}.jsonl`, import.meta.url), "utf8").split("\n"));
  const found: Read[] = [];
  for (const line of lines) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const one = await filterOf(line);
    if (one !== null) found.push(one);
  }
  for (const { text, tree } of found) {
    if (!isTree(tree)) throw new Error(text);
    const written = textOfChips(chipsOf(tree, text));
    expect(written).toBe(text);
    expect((await parse({ expression: written }))["tree"]).toEqual(tree);
  }
  expect(found.length).toBeGreaterThan(100);
  if (process.env["WRITE_CASES"] !== undefined) {
    const unique = [...new Map(found.map((one) => [one.text, one])).values()];
    writeFileSync(new URL("./cases.jsonl", import.meta.url), unique.map((one) => `${JSON.stringify(one)}\n`).join(""));
  }
}, 120_000);
