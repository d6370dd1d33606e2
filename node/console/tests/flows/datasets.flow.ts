// Flows 33 and 34: cells that are edited and pasted, versions of a dataset, and files that are imported.
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import type { Project } from "../seed";
import { flow, PATIENCE, type Flow } from "../support/flow";
import { expectFocusSeen } from "../support/focus";
import { at, listAt, textAt } from "../support/json";
import { column, ownProject } from "../support/logs";
import { datasetsPath } from "../support/screens";

const rowsOf = (page: Page): Locator => page.getByRole("grid", { name: /^Rows of / });

/** Waits until a column of the dataset has these texts, which may be edited, and no others. */
async function expectCells(page: Page, title: string, texts: readonly string[]): Promise<void> {
  const seen = async (): Promise<readonly string[]> => {
    const cells = (await rowsOf(page).count()) === 0 ? [] : await column(rowsOf(page), title);
    return cells.map((cell) => cell.replace(/, edited$/, ""));
  };
  await expect.poll(seen, { timeout: PATIENCE }).toEqual(texts);
}

/** A dataset of a project of the flow's own, with rows of these inputs and expected values. */
async function makeDataset(acted: Flow, project: Project, rows: Readonly<Record<string, number>>): Promise<string> {
  const made = await acted.api.call("POST", "/v1/dataset", { project_id: project.id, name: "DS" });
  const id = textAt(made, "id");
  const events = Object.entries(rows).map(([input, expected]) => ({ id: `row-${input}`, input, expected }));
  if (events.length > 0) await acted.api.insert("dataset", id, events);
  return id;
}

/** What the API has of a dataset: inputs with expected values, and the transaction of each row. */
async function stored(acted: Flow, dataset: string) {
  const rows = await acted.api.query(`SELECT input, expected, _xact_id FROM dataset('${dataset}') LIMIT 2000`);
  const pairs = rows.map((row) => [String(at(row, "input")), at(row, "expected")] as const);
  return {
    values: Object.fromEntries(pairs),
    transactions: Object.fromEntries(rows.map((row) => [String(at(row, "input")), at(row, "_xact_id")] as const)),
  };
}

/** Presses an arrow until a cell has the focus. */
async function goTo(page: Page, cell: Locator, key: "ArrowLeft" | "ArrowRight"): Promise<void> {
  for (let presses = 0; presses < 8; presses += 1) {
    if (await cell.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press(key);
  }
  throw new Error(`${key} does not reach the cell`);
}

const cellOf = (page: Page, row: string, text: string): Locator =>
  rowsOf(page)
    .getByRole("row")
    .filter({ has: page.getByRole("gridcell", { name: row, exact: true }) })
    .getByRole("gridcell", { name: text, exact: true });

flow("33 a cell edited and 3 rows pasted, by keyboard alone, are one insert; the version before can be restored", async (acted) => {
  const { ann } = acted.seed.people;
  const project = await ownProject(acted, "cells");
  const dataset = await makeDataset(acted, project, { a: 1, b: 2, c: 3 });
  const address = datasetsPath(acted, project, "DS");
  const other = await acted.open(ann, address);
  await expectCells(other, "Expected", ["3", "2", "1"]);
  const page = await acted.open(ann, address);
  const inserts: unknown[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && /\/insert$/.test(request.url())) inserts.push(request.postDataJSON());
  });
  await expectCells(page, "Expected", ["3", "2", "1"]);

  await page.keyboard.press("j");
  await goTo(page, cellOf(page, "row-c", "3"), "ArrowRight");
  await expectFocusSeen(page);
  await page.keyboard.press("Enter");
  const editor = page.getByRole("dialog", { name: "Edit expected of row-c" });
  await editor.getByRole("textbox", { name: "expected of row-c" }).waitFor();
  await expectFocusSeen(page);
  await page.keyboard.press("Control+a");
  await page.keyboard.type("[");
  await editor.getByText(/line 1|column/i).first().waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("33");
  await page.keyboard.press("Control+Enter");
  await editor.waitFor({ state: "detached" });
  await expectCells(page, "Expected", ["33", "2", "1"]);
  const unsaved = page.getByRole("toolbar", { name: "Unsaved edits" });
  await unsaved.getByText("1 cell not saved").waitFor();

  await goTo(page, cellOf(page, "row-b", "b"), "ArrowLeft");
  await page.evaluate(() => navigator.clipboard.writeText('d\t{"n":4}\ne\t{"n":5}\nf\t{"n":6}\n'));
  await page.keyboard.press("Control+v");
  await unsaved.getByText("1 cell and 3 new rows not saved").waitFor();
  await page.keyboard.press("z");
  await unsaved.getByText("1 cell not saved").waitFor();
  await page.keyboard.press("Shift+Z");
  await unsaved.getByText("1 cell and 3 new rows not saved").waitFor();
  expect(inserts).toEqual([]);
  const before = await stored(acted, dataset);
  expect(before.values).toEqual({ a: 1, b: 2, c: 3 });

  await page.keyboard.press("Control+s");
  await page.getByText("Saved 1 cell and 3 new rows.").first().waitFor();
  const after = await stored(acted, dataset);
  expect(after.values).toEqual({ a: 1, b: 2, c: 33, d: { n: 4 }, e: { n: 5 }, f: { n: 6 } });
  expect(inserts).toHaveLength(1);
  expect(listAt(inserts[0], "events")).toHaveLength(4);
  const written = ["c", "d", "e", "f"].map((input) => after.transactions[input]);
  expect(new Set(written).size).toBe(1);
  expect(after.transactions["a"]).toBe(before.transactions["a"]);
  const seenBy = async (reader: Page): Promise<readonly string[]> => [...(await column(rowsOf(reader), "Expected"))].sort();
  await expect.poll(() => seenBy(other), { timeout: PATIENCE }).toEqual(["1", "2", "33", '{"n":4}', '{"n":5}', '{"n":6}']);

  await page.getByRole("button", { name: "Versions" }).click();
  const versions = page.getByRole("dialog", { name: "Versions of DS" });
  const changes = versions.getByRole("region", { name: "Last changes" }).getByRole("listitem");
  await changes.filter({ hasText: "4 rows written" }).waitFor();
  await changes.filter({ hasText: "2 rows written" }).getByRole("button").first().click();
  await expectCells(page, "Expected", ["3", "2", "1"]);
  expect(await rowsOf(page).getAttribute("aria-readonly")).toBe("true");
  const version = textAt(before.transactions, "a");
  expect(new URL(page.url()).searchParams.get("version")).toBe(version);
  await page.getByRole("region", { name: "Version" }).getByRole("button", { name: "Restore" }).click();
  const restore = page.getByRole("dialog", { name: /^Restore to / });
  await restore.getByText("4 rows will change").waitFor();
  const preview = await acted.api.call("POST", `/v1/dataset/${dataset}/restore/preview`, { version });
  expect(preview).toMatchObject({ rows_to_restore: 1, rows_to_delete: 3 });
  await restore.getByRole("button", { name: "Restore" }).click();
  await page.getByText("The dataset is as it was: 1 row restored, 3 rows deleted.").first().waitFor();
  await expectCells(page, "Expected", ["3", "2", "1"]);
  expect((await stored(acted, dataset)).values).toEqual({ a: 1, b: 2, c: 3 });
});

const BAD_LINE = 500;

/** A file of a head and 1,000 rows, one of which has too many cells. */
const tableOfThousand = (): string =>
  [
    "question,answer,level",
    ...Array.from({ length: 1000 }, (_, index) =>
      index + 2 === BAD_LINE ? "one,2,easy,too many" : `"question ${index}, in full",${index},easy`,
    ),
  ].join("\r\n");

flow("34 a CSV of 1,000 rows is imported, and the bad line is named", async (acted) => {
  const project = await ownProject(acted, "import");
  const dataset = await makeDataset(acted, project, {});
  const page = await acted.open(acted.seed.people.ann, datasetsPath(acted, project, "DS"));
  await page.getByText("This dataset has no rows yet.").waitFor();
  await page.keyboard.press("i");
  const dialog = page.getByRole("dialog", { name: "Import rows into DS" });
  const file = { name: "rows.csv", mimeType: "text/csv", buffer: Buffer.from(tableOfThousand()) };
  await dialog.getByLabel("File to import").setInputFiles(file);
  await dialog.getByRole("combobox", { name: "Field of question" }).selectOption("Input");
  await dialog.getByRole("combobox", { name: "Field of answer" }).selectOption("Expected");
  await dialog.getByRole("combobox", { name: "Field of level" }).selectOption("Metadata");
  await dialog.getByRole("checkbox", { name: "Read numbers, true, false and null as such" }).check();
  const preview = dialog.getByRole("region", { name: "Preview of the rows" });
  expect(await preview.getByRole("row").count()).toBe(51);
  expect(await preview.getByRole("row").nth(1).innerText()).toContain("question 0, in full");
  await dialog.getByRole("button", { name: "Import" }).click();
  await dialog.getByText("Done.").waitFor();
  await dialog.getByText("999 rows written").waitFor();
  const refused = await dialog.getByRole("list", { name: "Refused lines" }).getByRole("listitem").allInnerTexts();
  expect(refused).toEqual([`Line ${BAD_LINE} This line has 4 cells, and the head has 3.`]);
  await dialog.getByText("Close", { exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("status").getByText("999 rows").first().waitFor();

  const { values, transactions } = await stored(acted, dataset);
  expect(Object.keys(values)).toHaveLength(999);
  expect(values["question 0, in full"]).toBe(0);
  expect(values["question 999, in full"]).toBe(999);
  expect(values[`question ${BAD_LINE - 2}, in full`]).toBeUndefined();
  // Batches of 500: the file is two inserts.
  expect(new Set(Object.values(transactions)).size).toBe(2);
  const [row] = await acted.api.query(`SELECT metadata FROM dataset('${dataset}') LIMIT 1`);
  expect(at(row, "metadata")).toEqual({ level: "easy" });
});
