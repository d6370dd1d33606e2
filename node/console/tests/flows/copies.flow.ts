// Flow 26: what is copied to read a row runs as it is, and returns that row.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { flow, type Flow } from "../support/flow";
import { at, textAt } from "../support/json";
import { ownProject, smallTrace } from "../support/logs";
import { queryPath } from "../support/screens";
import { expectLines, tracePath } from "../support/trace";

const run = promisify(execFile);

/** An id and a value with what shells and programs take for their own. */
const ID = `it's "$HOME" \`id\``;
const INPUT = { text: "quotes ' \" \\ and $(echo no) \u{1f600} é", list: [1, null, true] };

/** The variable of the environment that copied code reads its key from. */
function variableIn(code: string): string {
  const [, name] = /\$(\w+_KEY)\b|environ\["(\w+)"\]|process\.env\.(\w+)/.exec(code)?.filter((found) => found !== undefined) ?? [];
  if (name === undefined) throw new Error(`no variable in ${code}`);
  return name;
}

/** Runs a program with the key in the variable that it names, and nothing else of this process but its path. */
async function runs(acted: Flow, program: string, options: readonly string[], code: string): Promise<string> {
  expect(code).not.toContain(acted.api.key);
  const env = { PATH: process.env["PATH"] ?? "", PYTHONIOENCODING: "utf-8", [variableIn(code)]: acted.api.key };
  const { stdout } = await run(program, [...options, code], { env, maxBuffer: 1 << 24 });
  return stdout;
}

/** Python prints what it reads. The same program that prints it in JSON. */
const pythonInJson = (code: string): string => code.replace(/\bprint\((.*)\)$/s, "print(json.dumps($1))");

/** Node.js prints what it reads. The same program that prints it in JSON. */
const scriptInJson = (code: string): string => code.replace(/console\.log\((.*)\);$/s, "console.log(JSON.stringify($1));");

const clipboard = (page: Page): Promise<string> => page.evaluate(() => navigator.clipboard.readText());

/** Empties the clipboard, copies with a click, and returns what was copied. */
async function copying(page: Page, click: () => Promise<void>): Promise<string> {
  await page.evaluate(() => navigator.clipboard.writeText(""));
  await click();
  await expect.poll(() => clipboard(page)).not.toBe("");
  return clipboard(page);
}

flow("26 the copied cURL command and programs return the row", async (acted) => {
  const project = await ownProject(acted, "copies");
  await acted.api.insert("project_logs", project.id, [
    smallTrace({ id: ID, ago: 60_000 }, { input: INPUT }),
    smallTrace({ id: "another", ago: 50_000 }),
  ]);
  const page = await acted.open(acted.seed.people.ann, tracePath(acted, project, ID));
  await expectLines(page, 1);
  const choose = (title: string) => (): Promise<void> =>
    page
      .getByRole("button", { name: "Actions", exact: true })
      .click()
      .then(() => page.getByRole("menuitem", { name: title, exact: true }).first().click());
  const curl = await copying(page, choose("cURL command"));
  const python = await copying(page, choose("Python program"));
  const script = await copying(page, choose("TypeScript program"));
  const printed = {
    curl: at(JSON.parse(await runs(acted, "bash", ["-c"], curl)), "data", 0),
    python: JSON.parse(await runs(acted, "python3", ["-c"], pythonInJson(python))),
    node: JSON.parse(await runs(acted, process.execPath, ["--input-type=module", "-e"], scriptInJson(script))),
  };
  const [row] = await acted.api.query(`SELECT * FROM project_logs('${project.id}') WHERE span_id != 'another'`);
  expect(at(row, "input")).toEqual(INPUT);
  for (const [program, found] of Object.entries(printed)) {
    expect(textAt(found, "id"), program).toBe(ID);
    expect(found, program).toEqual(row);
  }
});

flow("26 the copied query runs by cURL and by Python, and returns its rows", async (acted) => {
  const query = `SELECT id FROM project_logs('${acted.seed.demo.id}') WHERE metadata.model = 'gpt-4o' ORDER BY id`;
  const page = await acted.open(acted.seed.people.ann, queryPath(acted, query));
  const toolbar = page.getByRole("toolbar", { name: "Query" });
  await toolbar.waitFor();
  const choose = (title: RegExp) => async (): Promise<void> => {
    await toolbar.getByRole("button", { name: /Copy/ }).click();
    await page.getByRole("menuitem", { name: title }).click();
  };
  const curl = await copying(page, choose(/cURL/));
  const python = await copying(page, choose(/Python/));
  const found = JSON.parse(await runs(acted, "bash", ["-c"], curl));
  const expected = (await acted.api.query(query)).map((row) => textAt(row, "id"));
  expect(expected).toEqual(["a2", "c2"]);
  expect([textAt(found, "data", 0, "id"), textAt(found, "data", 1, "id")]).toEqual(expected);
  const lines = (await runs(acted, "python3", ["-c"], pythonInJson(python))).trim().split("\n");
  expect(lines.map((line) => textAt(JSON.parse(line), "id"))).toEqual(expected);
});
