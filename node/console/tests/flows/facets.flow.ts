// Flows 10 and 11: the range that is dragged over the histogram, and the counts of the facets.
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { DEMO_RANGE } from "../support/demo";
import { flow, type Flow } from "../support/flow";
import { at } from "../support/json";
import { column, demoLogs, expectTraces, logsPath, traces } from "../support/logs";

const histogram = (page: Page): Locator => page.getByRole("slider", { name: /^Traces over time/ });

const rangeOf = (page: Page): string => new URL(page.url()).searchParams.get("t") ?? "";

/** The roots of demo within a range, as the API finds them. */
async function rootsWithin(acted: Flow, range: string): Promise<unknown[]> {
  const [from = "", to = ""] = range.split("..");
  const when = `created >= '${from}' and created < '${to}'`;
  const source = `project_logs('${acted.seed.demo.id}') summary`;
  const rows = await acted.api.query(`select: root_span_id | from: ${source} | filter: ${when}`);
  return rows.map((row) => at(row, "root_span_id"));
}

const ABSOLUTE = /^\d{4}-\d\d-\d\dT[\d:.]+Z\.\.\d{4}-\d\d-\d\dT[\d:.]+Z$/;

flow("10 a drag over the histogram sets an absolute range, and so do keys", async (acted) => {
  const page = await acted.open(acted.seed.people.ann, demoLogs(acted));
  await expectTraces(page, ["e1", "d1", "c1", "b1", "a1"]);
  const box = await histogram(page).boundingBox();
  if (box === null) throw new Error("the histogram has no place");
  const middle = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.25, middle);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.4, middle, { steps: 4 });
  await page.mouse.move(box.x + box.width * 0.6, middle, { steps: 4 });
  await page.mouse.up();
  await expectTraces(page, ["c1", "b1", "a1"]);
  expect(rangeOf(page)).toMatch(ABSOLUTE);
  expect(rangeOf(page)).not.toBe(DEMO_RANGE);
  expect(await rootsWithin(acted, rangeOf(page))).toEqual(["c1", "b1", "a1"]);

  await page.goto(demoLogs(acted));
  await expectTraces(page, ["e1", "d1", "c1", "b1", "a1"]);
  await histogram(page).focus();
  await page.keyboard.press("End");
  await page.keyboard.press("Shift+Home");
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("Enter");
  await expect.poll(() => rangeOf(page)).not.toBe(DEMO_RANGE);
  expect(rangeOf(page)).toMatch(ABSOLUTE);
  const roots = await rootsWithin(acted, rangeOf(page));
  await expect.poll(async () => [...(await column(traces(page), "root_span_id"))]).toEqual(roots);
});

/** The values of a facet with their counts, as screen readers hear them. */
async function facet(page: Page, name: string): Promise<readonly string[]> {
  const list = page.getByRole("complementary", { name: "Facets" }).getByRole("list", { name });
  await list.getByRole("button").first().waitFor();
  const heard = await list.getByRole("button").evaluateAll((buttons) =>
    buttons.map((button) => button.getAttribute("aria-label") ?? ""),
  );
  return heard.filter((label) => / traces?$/.test(label)).sort();
}

/** The values of a path with how many traces have each, by the exact query. */
async function counted(acted: Flow, project: string, path: string, filter: string): Promise<readonly string[]> {
  const rows = await acted.api.query(
    [
      `dimensions: ${path} as v`,
      "measures: count_distinct(root_span_id) as n",
      `from: project_logs('${project}')`,
      `filter: ${filter}`,
      "limit: 50",
    ].join(" | "),
  );
  return rows
    .filter((row) => at(row, "v") !== null)
    .map((row) => [String(at(row, "v")), Number(at(row, "n"))] as const)
    .map(([value, count]) => `${value}, ${count.toLocaleString("en-US")} trace${count === 1 ? "" : "s"}`)
    .sort();
}

flow("11 the counts of the facets equal the exact query", async (acted) => {
  const { ann } = acted.seed.people;
  const page = await acted.open(ann, demoLogs(acted));
  await expectTraces(page, ["e1", "d1", "c1", "b1", "a1"]);
  const { id } = acted.seed.demo;
  for (const path of ["metadata.model", "span_attributes.type"]) {
    expect(await facet(page, `Values of ${path}`)).toEqual(await counted(acted, id, path, "true"));
  }
  expect(await facet(page, "Values of tags")).toEqual(["billing, 1 trace", "prod, 3 traces", "staging, 1 trace"]);
  expect(await facet(page, "Errors")).toEqual(["With errors, 2 traces", "Without errors, 3 traces"]);

  const filter = "tags INCLUDES 'prod'";
  const wide = await acted.open(ann, logsPath(acted, acted.seed.wide, { t: "1d", q: filter }));
  await traces(wide).waitFor();
  const expected = await counted(acted, acted.seed.wide.id, "metadata.model", filter);
  expect(await facet(wide, "Values of metadata.model")).toEqual(expected);

  await page.getByRole("button", { name: "gpt-4o, 2 traces" }).click();
  await expectTraces(page, ["c1", "a1"]);
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await page.getByRole("button", { name: "Exclude gpt-4o", exact: true }).click();
  await expectTraces(page, ["e1", "d1", "b1"]);
});
