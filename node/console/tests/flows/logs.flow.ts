// Flows 7, 8, 9, 12 and 14: the list of logs, its filter, what comes live, and its links.
import { expect } from "vitest";
import { flow } from "../support/flow";
import { expectFocusSeen } from "../support/focus";
import { at } from "../support/json";
import {
  applyText,
  arrowTo,
  column,
  demoLogs,
  expectTraces,
  logsPath,
  ownProject,
  smallTrace,
  tabTo,
  traces,
} from "../support/logs";

flow("7 demo shows e1 d1 c1 b1 a1", async (acted) => {
  const page = await acted.open(acted.seed.people.ben, demoLogs(acted));
  await expectTraces(page, ["e1", "d1", "c1", "b1", "a1"]);
  expect(await traces(page).getAttribute("aria-rowcount")).toBe("6");
  const found = await acted.api.query(
    `select: root_span_id | from: project_logs('${acted.seed.demo.id}') summary`,
  );
  expect(found.map((row) => at(row, "root_span_id"))).toEqual(["e1", "d1", "c1", "b1", "a1"]);
  expect(await page.title()).toContain(acted.seed.demo.name);
});

flow("8 a chip metadata.model = 'gpt-4o', by keyboard alone, leaves c1 a1; back removes it", async (acted) => {
  const page = await acted.open(acted.seed.people.ann, demoLogs(acted));
  await expectTraces(page, ["e1", "d1", "c1", "b1", "a1"]);
  await page.keyboard.press("/");
  const input = page.getByRole("combobox", { name: "Filter", exact: true });
  await expectFocusSeen(page);
  await page.keyboard.type("metadata.model");
  await arrowTo(page, input, /^metadata\.model(?! =)/);
  await page.keyboard.press("Enter");
  const operator = page.getByRole("combobox", { name: "Operator" });
  await operator.waitFor();
  await arrowTo(page, operator, /^is$/);
  await page.keyboard.press("Enter");
  const value = page.getByRole("combobox", { name: "Value" });
  await page.getByRole("option", { name: /^gpt-4o 2$/ }).waitFor();
  await arrowTo(page, value, /^gpt-4o2$/);
  await page.keyboard.press("Enter");
  await expectTraces(page, ["c1", "a1"]);
  const toText = page.getByRole("button", { name: "Show the filter as text" });
  await tabTo(page, toText);
  await expectFocusSeen(page);
  await page.keyboard.press("Enter");
  const line = page.getByRole("combobox", { name: "Filter expression" });
  await expect.poll(() => line.inputValue()).toContain("metadata.model = 'gpt-4o'");
  const expression = await line.inputValue();
  const query = `select: root_span_id | from: project_logs('${acted.seed.demo.id}') summary | filter: ${expression}`;
  expect((await acted.api.query(query)).map((row) => at(row, "root_span_id"))).toEqual(["c1", "a1"]);
  await page.goBack();
  await expectTraces(page, ["e1", "d1", "c1", "b1", "a1"]);
  expect(new URL(page.url()).searchParams.get("q")).toBeNull();
});

flow("9 error is not null leaves d1 b1; a syntax error marks its column, and the rows stay", async (acted) => {
  const page = await acted.open(acted.seed.people.ann, demoLogs(acted));
  await expectTraces(page, ["e1", "d1", "c1", "b1", "a1"]);
  await applyText(page, "error is not null");
  await expectTraces(page, ["d1", "b1"]);
  await applyText(page, "error is not");
  const alert = page.getByRole("alert").filter({ hasText: "Column" });
  await alert.waitFor();
  const answer = await acted.api.call("POST", "/console/parse", { expression: "error is not" });
  expect(await alert.innerText()).toContain(`Column ${String(at(answer, "error", "column"))}:`);
  expect(await page.getByRole("combobox", { name: "Filter expression" }).getAttribute("aria-invalid")).toBe("true");
  await expectTraces(page, ["d1", "b1"]);
});

flow("12 twenty rows come while the list is scrolled: 20 new, nothing moves; at the top they appear", async (acted) => {
  const project = await ownProject(acted, "tail");
  const old = Array.from({ length: 80 }, (_, index) => smallTrace({ id: `old-${index}`, ago: 600_000 - index * 1000 }));
  await acted.api.insert("project_logs", project.id, old);
  const page = await acted.open(acted.seed.people.ann, logsPath(acted, project));
  const grid = traces(page);
  await grid.getByRole("gridcell", { name: "old-79", exact: true }).waitFor();
  await grid.hover();
  await page.mouse.wheel(0, 700);
  await expect.poll(() => grid.evaluate((element) => element.scrollTop)).toBe(700);
  const before = await column(grid, "root_span_id");
  const fresh = Array.from({ length: 20 }, (_, index) => smallTrace({ id: `new-${index}`, ago: 20 - index }));
  await acted.api.insert("project_logs", project.id, fresh);
  const button = page.getByRole("button", { name: "20 new" });
  await button.waitFor({ timeout: 15_000 });
  expect(await grid.evaluate((element) => element.scrollTop)).toBe(700);
  expect(await column(grid, "root_span_id")).toEqual(before);
  await page.mouse.wheel(0, -2000);
  await grid.getByRole("gridcell", { name: "new-19", exact: true }).waitFor();
  const expected = Array.from({ length: 20 }, (_, index) => `new-${19 - index}`);
  await expect.poll(async () => (await column(grid, "root_span_id")).slice(0, 21)).toEqual([...expected, "old-79"]);
  expect(await button.count()).toBe(0);
});

flow("14 the link that y copies shows the same rows a day later", async (acted) => {
  const project = await ownProject(acted, "link");
  const now = Array.from({ length: 3 }, (_, index) => smallTrace({ id: `now-${index}`, ago: 60_000 * (3 - index) }));
  await acted.api.insert("project_logs", project.id, now);
  const page = await acted.open(acted.seed.people.ann, logsPath(acted, project));
  await expectTraces(page, ["now-2", "now-1", "now-0"]);
  await page.keyboard.press("y");
  await page.getByText("is copied").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  expect(new URL(link).searchParams.get("t")).toMatch(/^\d{4}-\d\d-\d\dT\S+\.\.\d{4}-\d\d-\d\dT\S+$/);
  const later = await acted.enter(acted.seed.people.ann);
  await later.clock.install({ time: Date.now() + 86_400_000 });
  const tomorrow = await later.newPage();
  await tomorrow.goto(link);
  await expectTraces(tomorrow, ["now-2", "now-1", "now-0"]);
});
