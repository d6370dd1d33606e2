// What arrives by the stream, the state of a moment before, and jobs over all that a filter finds.
import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Project } from "../seed";
import { flow, type Flow } from "../support/flow";
import { at, listAt, textAt } from "../support/json";
import { column, expectTraces, logsPath, ownProject, rowOf, smallTrace, traces } from "../support/logs";
import { experimentsPath } from "../support/screens";

flow("rows arrive by the stream, also those that came while Live was off", async (acted) => {
  const project = await ownProject(acted, "stream");
  await acted.api.insert("project_logs", project.id, [smallTrace({ id: "first", ago: 60_000 })]);
  const context = await acted.enter(acted.seed.people.ann);
  const page = await context.newPage();
  const streamed = page.waitForResponse((response) => new URL(response.url()).pathname.endsWith(`/${project.id}/tail`));
  await page.goto(logsPath(acted, project));
  await expectTraces(page, ["first"]);
  const response = await streamed;
  expect([response.status(), response.headers()["content-type"]]).toEqual([200, "text/event-stream"]);
  await acted.api.insert("project_logs", project.id, [smallTrace({ id: "second", ago: 1000 })]);
  await expectTraces(page, ["second", "first"]);
  const live = page.getByRole("button", { name: "Live", exact: true });
  await live.click();
  expect(await live.getAttribute("aria-pressed")).toBe("false");
  await acted.api.insert("project_logs", project.id, [smallTrace({ id: "third", ago: 0 })]);
  const again = page.waitForResponse((one) => new URL(one.url()).pathname.endsWith(`/${project.id}/tail`));
  await live.click();
  await again;
  await expectTraces(page, ["third", "second", "first"]);
});

/** The version in the address of a page. */
const versionOf = (page: Page): string | null => new URL(page.url()).searchParams.get("version");

async function readAsOf(page: Page, transaction: string): Promise<void> {
  const dialog = page.getByRole("dialog", { name: "Read rows as of" });
  await dialog.getByRole("radio", { name: "A transaction" }).check();
  await dialog.getByRole("textbox", { name: "Transaction id" }).fill(transaction);
  await dialog.getByRole("button", { name: "Read as of this" }).click();
  await page.getByRole("region", { name: "Version" }).getByText(/^You see the state of/).waitFor();
  expect(versionOf(page)).toBe(transaction);
}

/** The newest transaction of a source. */
async function newestOf(acted: Flow, source: string): Promise<string> {
  const [row] = await acted.api.query(`SELECT max(_xact_id) AS newest FROM ${source}`);
  return String(at(row, "newest"));
}

flow("a row that was tagged later has no tag as of before, in the list and in its trace", async (acted) => {
  const project = await ownProject(acted, "past");
  const source = `project_logs('${project.id}')`;
  await acted.api.insert("project_logs", project.id, [smallTrace({ id: "one", ago: 60_000 })]);
  const before = await newestOf(acted, source);
  await acted.api.insert("project_logs", project.id, [{ id: "one", _is_merge: true, tags: ["later"] }, smallTrace({ id: "two", ago: 1000 })]);
  const page = await acted.open(acted.seed.people.ann, logsPath(acted, project, { cols: "root_span_id,tags" }));
  await expectTraces(page, ["two", "one"]);
  await rowOf(page, "one").getByText("later").waitFor();
  await page.getByRole("button", { name: "Display" }).click();
  await page.getByRole("button", { name: "Show an earlier state" }).click();
  await readAsOf(page, before);
  await expectTraces(page, ["one"]);
  expect(await column(traces(page), "Tags")).toEqual(["-"]);
  const then = await acted.api.query(`SELECT id, tags FROM ${source}`, { version: before });
  expect(then).toEqual([{ id: "one", tags: null }]);
  await page.getByRole("checkbox", { name: /^Select / }).last().check();
  await page.getByRole("toolbar", { name: "Selected rows" }).getByText("The past cannot be changed.").waitFor();
  await page.goBack();
  await expectTraces(page, ["two", "one"]);
  await page.goForward();
  await expectTraces(page, ["one"]);
  await page.getByRole("button", { name: "Back to now" }).click();
  await expectTraces(page, ["two", "one"]);
  expect(versionOf(page)).toBeNull();

  await page.goto(acted.path("p", project.name, "trace", "one"));
  await page.getByText("later", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Actions", exact: true }).click();
  await page.getByRole("menuitem", { name: "Show an earlier state" }).click();
  await readAsOf(page, before);
  await expect.poll(() => page.getByText("later", { exact: true }).count()).toBe(0);
  await page.reload();
  await page.getByRole("region", { name: "Version" }).waitFor();
  await page.getByRole("treegrid").getByRole("row", { name: /chat/ }).waitFor();
  expect(await page.getByText("later", { exact: true }).count()).toBe(0);
});

async function makeExperiment(acted: Flow, project: Project, name: string): Promise<string> {
  return textAt(await acted.api.call("POST", "/v1/experiment", { project_id: project.id, name }), "id");
}

flow("an experiment counts as of a moment what had come by then, also on the comparison", async (acted) => {
  const project = await ownProject(acted, "past-runs");
  const id = await makeExperiment(acted, project, "run");
  const result = (input: string) => ({ id: input, span_id: input, root_span_id: input, input, output: "a", expected: "a", scores: { Exact: 1 } });
  await acted.api.insert("experiment", id, [result("1"), result("2")]);
  const before = await newestOf(acted, `experiment('${id}')`);
  await acted.api.insert("experiment", id, [result("3")]);
  const page = await acted.open(acted.seed.people.ann, experimentsPath(acted, project));
  const grid = page.getByRole("grid", { name: "Experiments" });
  await expect.poll(() => column(grid, "Rows")).toEqual(["3"]);
  await page.getByRole("button", { name: "Show an earlier state" }).click();
  await readAsOf(page, before);
  await expect.poll(() => column(grid, "Rows")).toEqual(["2"]);
  await grid.getByRole("link", { name: "run", exact: true }).click();
  await page.getByRole("region", { name: "Version" }).waitFor();
  expect(versionOf(page)).toBe(before);
  const [counted] = await acted.api.query(`SELECT count(1) AS n FROM experiment('${id}')`, { version: before });
  expect(at(counted, "n")).toBe(2);
});

/** Selects all that the filter finds, by the keys and the button that offers it. */
async function selectAll(page: Page, loaded: string, words: string): Promise<void> {
  await traces(page).getByRole("gridcell", { name: loaded, exact: true }).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("ControlOrMeta+a");
  await page.getByRole("button", { name: `Select all ${words} that match` }).click();
  await page.getByRole("toolbar", { name: "Selected rows" }).getByText(`${words} traces selected`).waitFor();
}

flow("a tag reaches all that the filter finds, and only that", async (acted) => {
  const project = await ownProject(acted, "job");
  const rows = Array.from({ length: 250 }, (_, index) =>
    smallTrace({ id: `row-${index}`, ago: 600_000 - index * 1000 }, index < 40 ? { error: "no" } : {}),
  );
  await acted.api.insert("project_logs", project.id, rows);
  const page = await acted.open(acted.seed.people.ann, logsPath(acted, project, { q: "error IS NULL", cols: "root_span_id,tags" }));
  await selectAll(page, "row-249", "210");
  await page.getByRole("button", { name: "Tag", exact: true }).click();
  await page.getByRole("dialog", { name: "Tag 210 traces" }).getByRole("textbox", { name: "Tag" }).fill("checked");
  await page.keyboard.press("Enter");
  await page.getByText("Tagging 210 traces with checked is done: 210 of 210.").waitFor();
  await rowOf(page, "row-249").getByText("checked").waitFor();
  const [tagged] = await acted.api.query(`SELECT count(1) AS n FROM project_logs('${project.id}') WHERE tags INCLUDES 'checked'`);
  expect(at(tagged, "n")).toBe(210);
  const failed = `SELECT count(1) AS n FROM project_logs('${project.id}') WHERE tags INCLUDES 'checked' AND error IS NOT NULL`;
  expect(at((await acted.api.query(failed))[0], "n")).toBe(0);
});

flow("a job is found again after the page was loaded anew, and is cancelled", async (acted) => {
  const project = await ownProject(acted, "long-job");
  const rows = Array.from({ length: 6000 }, (_, index) => smallTrace({ id: `row-${index}`, ago: 600_000 - index }));
  await acted.api.insert("project_logs", project.id, rows);
  const page = await acted.open(acted.seed.people.ann, logsPath(acted, project));
  await selectAll(page, "row-5999", "6,000");
  await page.getByRole("button", { name: "Add to dataset" }).click();
  const dialog = page.getByRole("dialog", { name: "Add 6,000 traces to a dataset" });
  await dialog.getByRole("textbox", { name: "Name of the new dataset" }).fill("copies");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("list", { name: "Jobs" }).getByRole("progressbar").waitFor();
  await page.reload();
  const job = page.getByRole("list", { name: "Jobs" }).getByRole("listitem").filter({ hasText: "Add to a dataset" });
  await job.getByRole("button", { name: "Cancel" }).click();
  await page.getByText(/^Add to a dataset was cancelled: [\d,]+ of 6,000\. What is done stays done\.$/).waitFor();
  const jobs = await acted.api.call("GET", "/console/jobs");
  const [cancelled] = listAt(jobs, "jobs");
  expect(at(cancelled, "state")).toBe("cancelled");
  const datasets = await acted.api.call("GET", `/v1/dataset?project_id=${project.id}&dataset_name=copies`);
  const id = textAt(listAt(datasets, "objects")[0], "id");
  const [copied] = await acted.api.query(`SELECT count(1) AS n FROM dataset('${id}')`);
  expect(Number(at(copied, "n"))).toBeLessThan(6000);
});
