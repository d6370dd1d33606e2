// Flow 5: the first traces of a server that nobody has used.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { Api } from "../support/api";
import { flow } from "../support/flow";
import { at, textAt } from "../support/json";

const run = promisify(execFile);

/** Waits for a text in the line of arrivals, and returns the milliseconds that it took. */
async function arrival(page: Page, text: string): Promise<number> {
  const started = performance.now();
  await page.getByRole("status", { name: "Traces that have arrived" }).getByText(text).waitFor();
  return Math.round(performance.now() - started);
}

flow("5 a fresh server shows code, and sees a row by /logs3 and one by OTLP", async (acted) => {
  const { freshBase, environment } = acted.stage;
  const api = new Api(freshBase, environment.fresh.key);
  const organization = textAt(await api.call("GET", "/v1/organization"), "objects", 0, "name");
  const owner = { ...acted.seed.people.ann, key: environment.fresh.key };
  const page = await acted.open(owner, `/app/${organization}`, { base: freshBase });
  await page.getByText("This organization has no project yet").waitFor();
  await page.getByRole("link", { name: "Send the first trace" }).click();
  await page.getByRole("heading", { name: "Waiting for the first trace" }).waitFor();

  const project = await api.call("POST", "/v1/project", { name: "by-logs3" });
  const place = { project_id: textAt(project, "id"), log_id: "g" };
  const row = { ...place, id: "first", input: "hello", span_attributes: { name: "answer" } };
  await api.call("POST", "/logs3", { rows: [row], api_version: 2 });
  const first = await arrival(page, "A trace has arrived");
  expect(await page.getByRole("status", { name: "Traces that have arrived" }).innerText()).toContain("by-logs3");

  await page.getByRole("textbox", { name: "Project" }).fill("by-otlp");
  await page.getByRole("heading", { name: "Waiting for a trace in by-otlp" }).waitFor();
  await page.getByRole("tab", { name: "cURL" }).click();
  const code = await page.getByRole("tabpanel", { name: "cURL" }).innerText();
  const shell = code.slice(code.indexOf("random()"));
  await run("bash", ["-c", shell], { env: { ...process.env, BRAINTRUST_API_KEY: environment.fresh.key } });
  const second = await arrival(page, "A trace has arrived");
  console.log(`flow 5: the rows were shown after ${first} and ${second} ms`);

  const found = await api.call("GET", "/v1/project?project_name=by-otlp");
  const [span] = await api.query(`SELECT * FROM project_logs('${textAt(found, "objects", 0, "id")}')`);
  expect(at(span, "span_attributes", "name")).toBe("answer");
  expect(at(span, "metrics", "prompt_tokens")).toBe(8);
});
