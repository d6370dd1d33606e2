// Flows 18 to 21, 23 to 25 and 28: the tree of a trace, the detail of a span, and a trace that grows.
import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Project } from "../seed";
import { flow, PATIENCE, type Flow } from "../support/flow";
import { expectFocusSeen } from "../support/focus";
import { at, listAt, textAt } from "../support/json";
import { demoLogs, expectTraces, ownProject, rowOf, smallTrace } from "../support/logs";
import { countRows, expectLines, inAddress, lines, selected, tracePath, tree } from "../support/trace";

const NAMES = ["chat", "openai.chat", "search_docs", "Toxicity"];
const DURATIONS = ["6.0 s", "3.0 s", "1.0 s", "1.0 s"];

flow("18 a1, by keyboard alone: a1 a2 a3 a4, 6 3 1 1 s", async (acted) => {
  const page = await acted.open(acted.seed.people.ann, demoLogs(acted));
  await expectTraces(page, ["e1", "d1", "c1", "b1", "a1"]);
  for (let step = 0; step < 5; step += 1) await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await expectLines(page, 4);
  for (const [index, line] of (await lines(page)).entries()) {
    expect(line).toContain(NAMES[index]);
    expect(line).toContain(DURATIONS[index]);
  }
  const spans = await acted.api.query(
    `SELECT id, metrics.duration AS d FROM project_logs('${acted.seed.demo.id}') WHERE root_span_id = 'a1' ORDER BY id`,
  );
  expect(spans.map((span) => [at(span, "id"), at(span, "d")])).toEqual([["a1", 6], ["a2", 3], ["a3", 1], ["a4", 1]]);
  await expectFocusSeen(page);
  await page.keyboard.press("Escape");
  await tree(page).waitFor({ state: "detached" });
  await expect.poll(() => rowOf(page, "a1").evaluate((row) => row.contains(document.activeElement))).toBe(true);
});

flow("19 J goes to the next trace and K back, and the filter stays", async (acted) => {
  const left = ["e1", "c1", "b1", "a1"];
  const page = await acted.open(acted.seed.people.ann, demoLogs(acted, { q: "error IS NULL" }));
  await expectTraces(page, left);
  await rowOf(page, "c1").getByRole("gridcell").nth(1).click();
  await expectLines(page, 3);
  await page.keyboard.press("J");
  await expect.poll(() => inAddress(page, "r")).toBe("b1");
  await tree(page).getByRole("row", { name: /cancel_order/ }).waitFor();
  expect(inAddress(page, "q")).toBe("error IS NULL");
  await expectTraces(page, left);
  await page.keyboard.press("K");
  await expect.poll(() => inAddress(page, "r")).toBe("c1");
  await tree(page).getByRole("row", { name: /anthropic\.messages/ }).waitFor();
  expect(inAddress(page, "q")).toBe("error IS NULL");
});

flow("20 the long trace: End reaches the last span with at most 400 rows, and e visits 12 errors", async (acted) => {
  const { bigSpans } = acted.stage.environment;
  const { big } = acted.seed;
  const page = await acted.open(acted.seed.people.ann, tracePath(acted, big, "big-0"));
  await expectLines(page, bigSpans);
  await tree(page).getByRole("row").first().focus();
  await page.keyboard.press("End");
  await expect.poll(() => selected(page).getAttribute("aria-rowindex")).toBe(String(bigSpans));
  expect(await countRows(page)).toBeLessThanOrEqual(400);
  await page.keyboard.press("Home");
  await expect.poll(() => selected(page).getAttribute("aria-rowindex")).toBe("1");
  const visited = new Set<string>();
  for (let error = 0; error < 12; error += 1) {
    const before = inAddress(page, "s");
    await page.keyboard.press("e");
    await expect.poll(() => inAddress(page, "s"), { timeout: PATIENCE }).not.toBe(before);
    visited.add(inAddress(page, "s") ?? "");
    expect(await selected(page).textContent()).toContain("error");
  }
  const failed = await acted.api.query(
    `SELECT span_id FROM project_logs('${big.id}') WHERE root_span_id = 'big-0' AND error IS NOT NULL`,
  );
  expect(failed).toHaveLength(12);
  expect([...visited].sort()).toEqual(failed.map((row) => textAt(row, "span_id")).sort());
  expect(await countRows(page)).toBeLessThanOrEqual(400);
});

flow("21 find looks into contents, enter goes through what is found, and f leaves only that", async (acted) => {
  const page = await acted.open(acted.seed.people.ann, tracePath(acted, acted.seed.demo, "a1", { s: "a2" }));
  await expectLines(page, 4);
  await tree(page).getByRole("row", { name: /openai\.chat/ }).focus();
  await page.keyboard.press("F");
  const field = page.getByRole("searchbox", { name: "Find in the trace" });
  await expectFocusSeen(page);
  await page.keyboard.type("password");
  const count = page.getByRole("search", { name: "Trace" }).getByRole("status");
  await expect.poll(() => count.textContent()).toBe("2");
  await field.press("Enter");
  await expect.poll(() => count.textContent()).toBe("2/2");
  await expect.poll(() => inAddress(page, "s")).toBe("a3");
  await field.press("Enter");
  await expect.poll(() => count.textContent()).toBe("1/2");
  await tree(page).getByRole("row").first().focus();
  await page.keyboard.press("f");
  await expectLines(page, 2);
  const [first, second] = await lines(page);
  expect([first, second]).toEqual([expect.stringContaining("chat"), expect.stringContaining("search_docs")]);
  await page.keyboard.press("f");
  await expectLines(page, 4);
});

const copied = (page: Page): Promise<string> => page.evaluate(() => navigator.clipboard.readText());

/** A megabyte with what copies lose easily: quotes, tabs, spaces at the ends, letters of two units, words in Hebrew. */
const LINE = '  "quoted" \\ back\tslash, \u{1f600} é \u05e9\u05dc\u05d5\u05dd 0123456789 </script> & \n';
const LARGE = LINE.repeat(Math.ceil((1 << 20) / LINE.length));

flow("23 a megabyte opens folded; its path and its value copy exactly", async (acted) => {
  const project = await ownProject(acted, "megabyte");
  const input = { first: 1, pages: [{ title: "one" }, { "full text": LARGE }] };
  await acted.api.insert("project_logs", project.id, [smallTrace({ id: "large", ago: 60_000 }, { input })]);
  const page = await acted.open(acted.seed.people.ann, tracePath(acted, project, "large"));
  await expectLines(page, 1);
  const json = page.getByRole("tree", { name: "Input" });
  const item = json.getByRole("treeitem", { name: /full text/ });
  await item.waitFor();
  expect(await item.getAttribute("aria-expanded")).toBe("false");
  expect(await item.textContent()).toContain("1.0 MB");
  expect((await json.textContent())?.length).toBeLessThan(5000);

  await json.focus();
  for (let presses = 0; presses < 10; presses += 1) {
    if ((await item.getAttribute("aria-selected")) === "true") break;
    await page.keyboard.press("ArrowDown");
  }
  expect(await item.getAttribute("aria-selected")).toBe("true");
  await page.keyboard.press("Control+c");
  await expect.poll(async () => (await copied(page)) === LARGE).toBe(true);
  await page.getByRole("button", { name: "Copy the path in Input" }).click();
  await expect.poll(() => copied(page)).toBe('pages[1]["full text"]');
  await page.getByRole("button", { name: "Copy the value in Input" }).click();
  await expect.poll(async () => (await copied(page)) === LARGE).toBe(true);

  await json.focus();
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => item.getAttribute("aria-expanded")).toBe("true");
  expect(await json.getByRole("treeitem").count()).toBeLessThanOrEqual(100);
  await page.keyboard.press("Home");
  await page.keyboard.press("Control+c");
  await expect.poll(async () => JSON.stringify(JSON.parse(await copied(page))) === JSON.stringify(input)).toBe(true);
});

/** A trace of one span in a project of the flow's own. */
async function plantSpan(acted: Flow, name: string): Promise<Project> {
  const project = await ownProject(acted, name);
  const more = { input: { question: "6 * 7" }, output: { answer: 42 }, metadata: { model: "m" }, tags: ["before"] };
  await acted.api.insert("project_logs", project.id, [smallTrace({ id: "said", ago: 60_000 }, more)]);
  return project;
}

flow("24 a score, a comment, an expected output and a tag are stored, and the history has their author", async (acted) => {
  const { ann } = acted.seed.people;
  const project = await plantSpan(acted, "said");
  const page = await acted.open(ann, tracePath(acted, project, "said"));
  await expectLines(page, 1);
  await page.getByRole("textbox", { name: "New comment" }).waitFor();
  await page.keyboard.press("c");
  await expectFocusSeen(page);
  await page.keyboard.type("right, but terse");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Comment added").first().waitFor();
  await page.getByRole("textbox", { name: "Name of another score" }).fill("Tone");
  await page.getByRole("spinbutton", { name: "Value of the other score, from 0 to 1" }).fill("0.25");
  await page.keyboard.press("Enter");
  await page.getByText("Score Tone saved").first().waitFor();
  await page.getByRole("textbox", { name: "New tag" }).fill("seen");
  await page.keyboard.press("Enter");
  await page.getByText("Tag seen added").first().waitFor();
  await page.getByRole("button", { name: "Set the expected output" }).click();
  await page.getByRole("textbox", { name: "Expected output, as text or JSON" }).fill('{"answer": 42, "unit": null}');
  await page.keyboard.press("Control+Enter");
  await page.getByText("Expected output saved").first().waitFor();

  const source = `project_logs('${project.id}')`;
  const [row] = await acted.api.query(`SELECT * FROM ${source} WHERE id = 'said'`);
  expect(at(row, "scores")).toEqual({ Tone: 0.25 });
  expect(at(row, "tags")).toEqual(["before", "seen"]);
  expect(at(row, "expected")).toEqual({ answer: 42, unit: null });
  expect(at(row, "output")).toEqual({ answer: 42 });
  // A comment is kept beside the row: it names its author itself and is no event of the row.
  const comments = listAt(row, "comments");
  expect(comments).toHaveLength(1);
  expect(comments[0]).toMatchObject({ comment: { text: "right, but terse" }, source: "app", metadata: { user_id: ann.id } });
  const events = await acted.api.query(`SELECT * FROM ${source} WHERE id = 'said'`, { audit_log: true });
  const said = events.filter((event) => at(event, "audit_data", "source") === "app");
  expect(said.map((event) => [at(event, "expected"), at(event, "tags"), at(event, "scores")])).toEqual([
    [{ answer: 42, unit: null }, null, null],
    [null, ["seen"], null],
    [null, null, { Tone: 0.25 }],
  ]);
  for (const event of said) expect(at(event, "audit_data", "metadata", "user_id")).toBe(ann.id);

  await page.getByRole("region", { name: "History" }).getByRole("button", { name: "Show" }).press("Enter");
  const history = page.getByRole("list", { name: "Writes to the span, the newest first" });
  for (const what of [/expected/, /tags/, /scores/]) await history.getByText(what).first().waitFor();
  const text = await history.textContent();
  for (const what of ["expected", "tags", "scores", "seen", "0.25", ann.email]) expect(text).toContain(what);
  const again = await acted.open(ann, tracePath(acted, project, "said"));
  const comment = again.getByRole("region", { name: "Comments" }).getByRole("listitem");
  await comment.filter({ hasText: "right, but terse" }).filter({ hasText: ann.email }).waitFor();
});

flow("25 d adds the span to a dataset with its origin, and warns when it is there already", async (acted) => {
  const project = await plantSpan(acted, "origin");
  const page = await acted.open(acted.seed.people.ann, tracePath(acted, project, "said"));
  await expectLines(page, 1);
  await page.keyboard.press("d");
  const dialog = page.getByRole("dialog", { name: "Add the span to a dataset" });
  await dialog.waitFor();
  await expectFocusSeen(page);
  await dialog.getByRole("textbox", { name: "Name of the new dataset" }).fill("Kept");
  await page.keyboard.press("Enter");
  await page.getByText("Added to Kept").first().waitFor();
  await dialog.waitFor({ state: "detached" });
  const made = await acted.api.call("GET", `/v1/dataset?project_id=${project.id}`);
  expect(listAt(made, "objects")).toHaveLength(1);
  const dataset = textAt(made, "objects", 0, "id");
  const rows = (): Promise<readonly unknown[]> => acted.api.query(`SELECT * FROM dataset('${dataset}')`);
  const [span] = await acted.api.query(`SELECT id, _xact_id FROM project_logs('${project.id}') WHERE id = 'said'`);
  const first = await rows();
  expect(first).toHaveLength(1);
  expect(at(first[0], "input")).toEqual({ question: "6 * 7" });
  expect(at(first[0], "expected")).toEqual({ answer: 42 });
  expect(at(first[0], "metadata")).toEqual({ model: "m" });
  expect(at(first[0], "tags")).toEqual(["before"]);
  const origin = { object_type: "project_logs", object_id: project.id, id: "said", _xact_id: textAt(span, "_xact_id") };
  expect(at(first[0], "origin")).toMatchObject(origin);

  await page.keyboard.press("d");
  await dialog.getByRole("combobox", { name: "Dataset" }).selectOption({ label: "Kept" });
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await dialog.getByRole("alert").filter({ hasText: "Kept has a row from this span already" }).waitFor();
  expect(await rows()).toHaveLength(1);
  await dialog.getByRole("button", { name: "Add again" }).click();
  await dialog.waitFor({ state: "detached" });
  await expect.poll(async () => (await rows()).length).toBe(2);
});

flow("28 a running trace grows, in the middle too; scroll and selection stay", async (acted) => {
  const project = await ownProject(acted, "running");
  const start = Date.now() / 1000 - 100;
  const child = (index: number, from: number) => ({
    ...smallTrace({ id: `step-${index}`, ago: 1000 }),
    root_span_id: "root",
    span_parents: ["root"],
    span_attributes: { name: `step-${index}`, type: "tool" },
    metrics: { start: from, end: from + 0.5 },
  });
  const root = { ...smallTrace({ id: "root", ago: 100_000 }), metrics: { start } };
  const first = Array.from({ length: 45 }, (_, index) => child(index, start + index));
  await acted.api.insert("project_logs", project.id, [root, ...first]);
  const page = await acted.open(acted.seed.people.ann, tracePath(acted, project, "root", { s: "step-30" }));
  await expectLines(page, 46);
  const line = tree(page).getByRole("row", { name: /step-30/ });
  await line.waitFor();
  await tree(page).evaluate((element) => element.scrollTo({ top: 300 }));
  const middle = async (): Promise<number> => Math.round((await line.boundingBox())?.y ?? -1);
  await expect.poll(() => tree(page).evaluate((element) => element.scrollTop)).toBe(300);
  const before = await middle();
  const later = Array.from({ length: 3 }, (_, index) => child(60 + index, start + 60 + index));
  await acted.api.insert("project_logs", project.id, later);
  await expectLines(page, 49);
  expect(await tree(page).evaluate((element) => element.scrollTop)).toBe(300);
  expect(await middle()).toBe(before);
  await acted.api.insert("project_logs", project.id, [child(70, start + 0.2), child(71, start + 0.4)]);
  await expectLines(page, 51);
  await expect.poll(middle).toBe(before);
  expect(inAddress(page, "s")).toBe("step-30");
  expect(await selected(page).textContent()).toContain("step-30");
  await page.getByRole("list", { name: "Facts of the trace" }).getByText("running").waitFor();
  await page.getByRole("list", { name: "Facts of the trace" }).getByText("51 spans").waitFor();
});
