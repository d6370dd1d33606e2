// Flow 36: what the query editor completes, the chart of a result, and its file.
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { downloaded, parquetFooter } from "../support/downloads";
import { flow } from "../support/flow";
import { at } from "../support/json";
import { column } from "../support/logs";
import { queryPath } from "../support/screens";

const result = (page: Page): Locator => page.getByRole("region", { name: "Result" });

flow("36 completion offers metadata.model, the result has a chart, and its Parquet file has its columns", async (acted) => {
  const { demo, people } = acted.seed;
  const page = await acted.open(people.ann, acted.path("query"));
  const editor = page.getByRole("textbox", { name: "Query", exact: true });
  await editor.click();
  await page.keyboard.type(`from: project_logs('${demo.id}') | measures: count(1) as spans | dimensions: mod`);
  await page.getByRole("option", { name: /^metadata\.model/ }).waitFor();
  await page.keyboard.type("el");
  const option = page.getByRole("option", { name: /^metadata\.model/ });
  for (let presses = 0; (await option.getAttribute("aria-selected")) !== "true"; presses += 1) {
    if (presses > 20) throw new Error("the arrow does not reach metadata.model");
    await page.keyboard.press("ArrowDown");
  }
  await page.keyboard.press("Enter");
  await page.keyboard.type(" as model | sort: model");
  await page.keyboard.press("Control+Enter");
  const text = `from: project_logs('${demo.id}') | measures: count(1) as spans | dimensions: metadata.model as model | sort: model`;
  await expect.poll(() => new URL(page.url()).searchParams.get("q")).toBe(text);
  const rows = await acted.api.query(text);
  const models = rows.map((row) => String(at(row, "model")));
  expect(models).toContain("gpt-4o");
  await expect.poll(async () => (await result(page).getByRole("grid").count()) > 0).toBe(true);
  const seen = await column(result(page).getByRole("grid"), "model");
  expect(seen.filter((model) => model !== "null" && model !== "-")).toEqual(models.filter((model) => model !== "null"));

  await result(page).getByRole("tab", { name: "Chart" }).click();
  const bars = result(page).getByRole("list", { name: "spans by model" }).getByRole("listitem");
  await bars.first().waitFor();
  const drawn = (await bars.allInnerTexts()).map((bar) => bar.replaceAll(/\s+/g, " ").trim());
  expect(drawn).toEqual(rows.map((row) => `${String(at(row, "model"))} ${String(at(row, "spans"))}`));

  await page.getByRole("toolbar", { name: "Query" }).getByRole("button", { name: "Export" }).click();
  const file = await downloaded(page, () => page.getByRole("menuitem", { name: "Export as Parquet" }).click());
  const footer = parquetFooter(file);
  expect(footer).toContain("model");
  expect(footer).toContain("spans");
});

flow("36 a link to a query runs it, and a fault is marked at its line", async (acted) => {
  const { demo, people } = acted.seed;
  const query = `SELECT id FROM project_logs('${demo.id}') WHERE error IS NOT NULL ORDER BY id`;
  const page = await acted.open(people.ben, queryPath(acted, query));
  await expect.poll(() => column(result(page).getByRole("grid"), "id")).toEqual(
    (await acted.api.query(query)).map((row) => at(row, "id")),
  );
  const editor = page.getByRole("textbox", { name: "Query", exact: true });
  await editor.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.type(`SELECT id FROM project_logs('${demo.id}') WHERE`);
  await page.keyboard.press("Control+Enter");
  const remarks = page.getByRole("list", { name: "Remarks on the query" });
  await remarks.getByText(/^Line 1/).first().waitFor();
}, [/console: Failed to load resource: .* 400 .*\/(?:btql|console\/parse)$/]);
