// Flows 13, 15 and 16: views, what is done with many rows, and files of them.
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { downloaded, parquetFooter } from "../support/downloads";
import { flow } from "../support/flow";
import { at, listAt, textAt } from "../support/json";
import { column, demoLogs, expectTraces, logsPath, ownProject, rowOf, smallTrace, traces } from "../support/logs";

const widthOf = async (page: Page, title: string): Promise<number> => {
  const box = await traces(page).getByRole("columnheader", { name: title }).boundingBox();
  return Math.round(box?.width ?? 0);
};

flow("13 a view restores filter, columns, widths and sort in another browser; Ben cannot change it", async (acted) => {
  const { ann, ben } = acted.seed.people;
  const name = `slow ones${acted.seed.suffix}`;
  const wanted = { q: "error IS NULL", cols: "root_span_id:222,duration:111,name", sort: "-duration" };
  const page = await acted.open(ann, demoLogs(acted, wanted));
  await expectTraces(page, ["b1", "c1", "a1", "e1"]);
  await page.getByRole("button", { name: /^View:/ }).click();
  await page.getByRole("menuitem", { name: "Save as a new view…" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill(name);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("button", { name: `View: ${name}` }).waitFor();

  const restored = await acted.open(ann, `${acted.path("p", acted.seed.demo.name, "logs")}`);
  await restored.getByRole("button", { name: /^View:/ }).click();
  await restored.getByRole("menuitemradio", { name }).click();
  await expectTraces(restored, ["b1", "c1", "a1", "e1"]);
  const heads = await traces(restored).getByRole("columnheader").allInnerTexts();
  expect(heads.map((head) => head.trim()).filter((head) => head !== "")).toEqual(["root_span_id", "Duration", "Name"]);
  expect([await widthOf(restored, "root_span_id"), await widthOf(restored, "Duration")]).toEqual([222, 111]);
  const duration = traces(restored).getByRole("columnheader", { name: "Duration" });
  expect(await duration.getAttribute("aria-sort")).toBe("descending");

  const his = await acted.open(ben, demoLogs(acted));
  await his.getByRole("button", { name: /^View:/ }).click();
  await his.getByRole("menuitemradio", { name }).click();
  await expectTraces(his, ["b1", "c1", "a1", "e1"]);
  await traces(his).getByRole("columnheader", { name: "Duration" }).getByRole("button").click();
  await expectTraces(his, ["e1", "a1", "c1", "b1"]);
  await his.getByRole("button", { name: /^View:/ }).click();
  const save = his.getByRole("menuitem", { name: `Save ${name}` });
  if ((await save.count()) > 0) {
    await save.click();
    await his.getByText("The view was not saved.").waitFor();
  }
  const views = `/v1/view?object_type=project&object_id=${acted.seed.demo.id}&view_name=${encodeURIComponent(name)}`;
  const [view] = listAt(await acted.api.call("GET", views), "objects");
  expect(at(view, "view_data", "search", "sort", 0, "dir")).toBe("desc");
  const refused = await acted.apiOf(ben).send("PATCH", `/v1/view/${textAt(view, "id")}`, {
    object_type: "project",
    object_id: acted.seed.demo.id,
    name: "mine",
  });
  expect(refused.status).toBe(403);
}, [/console: Failed to load resource: .* 403 .*\/v1\/view/]);

flow("15 x j x and a tag: both rows have it; undo takes it away", async (acted) => {
  const project = await ownProject(acted, "bulk");
  const rows = ["one", "two", "three"].map((id, index) =>
    smallTrace({ id, ago: 60_000 * (3 - index) }, { tags: ["before"] }),
  );
  await acted.api.insert("project_logs", project.id, rows);
  const tagsOf = async (): Promise<unknown[]> => {
    const found = await acted.api.query(`SELECT id, tags FROM project_logs('${project.id}') ORDER BY created`);
    return found.map((row) => at(row, "tags"));
  };
  const page = await acted.open(acted.seed.people.ann, logsPath(acted, project));
  await expectTraces(page, ["three", "two", "one"]);
  await page.keyboard.press("j");
  await expect.poll(() => rowOf(page, "three").getAttribute("aria-current")).toBe("true");
  await page.keyboard.press("x");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await expect.poll(() => rowOf(page, "two").getAttribute("aria-selected")).toBe("true");
  await page.getByText("2 traces selected").first().waitFor();
  await page.keyboard.press("#");
  await page.getByRole("dialog", { name: "Tag 2 traces" }).waitFor();
  await page.keyboard.type("urgent");
  await page.keyboard.press("Enter");
  await page.getByText("The tag urgent was added to 2 rows.").waitFor();
  expect(await tagsOf()).toEqual([["before"], ["before", "urgent"], ["before", "urgent"]]);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect.poll(tagsOf).toEqual([["before"], ["before"], ["before"]]);
});

/** Exports what the list shows, and returns the file. */
async function exported(page: Page, title: string): Promise<Buffer> {
  await page.getByRole("button", { name: "Export what the filter finds" }).click();
  return downloaded(page, () => page.getByRole("menuitem", { name: title, exact: true }).click());
}

flow("16 jsonl, csv and parquet hold the ids of the table", async (acted) => {
  const page = await acted.open(acted.seed.people.ben, demoLogs(acted, { q: "error IS NULL" }));
  await expectTraces(page, ["e1", "c1", "b1", "a1"]);
  const table = await column(traces(page), "root_span_id");
  const lines = (await exported(page, "JSON lines")).toString("utf8").trim().split("\n");
  expect(lines.map((line): unknown => at(JSON.parse(line), "root_span_id"))).toEqual(table);
  const [head = "", ...records] = (await exported(page, "CSV")).toString("utf8").trim().split(/\r?\n/);
  const place = head.split(",").indexOf("root_span_id");
  expect(place).toBeGreaterThanOrEqual(0);
  expect(records).toHaveLength(table.length);
  for (const [index, root] of table.entries()) expect(records[index]).toContain(root);
  expect(parquetFooter(await exported(page, "Parquet"))).toContain("root_span_id");

  const wide = await acted.open(acted.seed.people.ann, logsPath(acted, acted.seed.wide, { t: "1d" }));
  await traces(wide).waitFor();
  const all = (await exported(wide, "JSON lines")).toString("utf8").trim().split("\n");
  expect(all.length, "a file has more than the rows of one page").toBeGreaterThan(1000);
});
