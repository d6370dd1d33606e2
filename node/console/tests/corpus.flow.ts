// Hostile texts where people write them: they are shown as what they are, and nothing of them runs. What screens and
// dialogs make of hostile names around them is looked at by axe.flow.ts, which visits them all.
import type { Page } from "playwright-core";
import { expect, vi } from "vitest";
import { CORPUS, nameAttacks } from "./support/evil";
import { flow } from "./support/flow";
import { madeByTexts } from "./support/inert";
import { column, demoLogs, logsPath, traces } from "./support/logs";
import { NO_ORGANIZATION, queryPath } from "./support/screens";
import { tracePath } from "./support/trace";

// Some of these show every text, which takes minutes on a busy machine.
vi.setConfig({ testTimeout: 600_000 });

/** Goes to another address without loading the page again, and waits until it is drawn. */
const goWithin = (page: Page, address: string): Promise<void> =>
  page.evaluate(async (href) => {
    history.replaceState(null, "", href);
    dispatchEvent(new PopStateEvent("popstate"));
    for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
  }, address);

flow("names of projects that attack are shown as they are", async (acted) => {
  const page = await acted.open(acted.seed.people.ann, acted.path());
  const filter = page.getByRole("searchbox", { name: "Filter the projects by name" });
  for (const name of nameAttacks()) {
    await filter.fill(name);
    const cells = page.getByRole("grid", { name: "Projects" }).getByRole("gridcell");
    await expect.poll(() => cells.allTextContents(), { message: name }).toContain(name);
    expect(await madeByTexts(page)).toEqual([]);
  }
  await filter.fill("");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to or do" }).fill("script");
  await page.getByRole("option").first().waitFor();
  expect(await madeByTexts(page)).toEqual([]);
});

flow("addresses that attack show a page and run nothing", async (acted) => {
  const page = await acted.open(acted.seed.people.ann, acted.path());
  await page.getByRole("grid", { name: "Projects" }).waitFor();
  for (const { text } of CORPUS.filter((attack) => attack.text.length < 2000)) {
    const part = encodeURIComponent(text);
    await goWithin(page, `/app/welcome?project=${part}&lang=${part}`);
    expect(await madeByTexts(page), text).toEqual([]);
  }
  await page.getByRole("heading", { level: 1, name: "Send traces" }).waitFor();
  for (const path of ["/app/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "/app/%22onload%3D/p/%3Cimg%20src%3Dx%3E", "/app/a%00b"]) {
    await page.goto(path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    expect(await madeByTexts(page), path).toEqual([]);
  }
}, [NO_ORGANIZATION]);

const SHAPES = ["traces", "spans"] as const;
const EVERY_COLUMN = "name,input,output,expected,scores,tags,type,model,error,metadata,id";

for (const shape of SHAPES) {
  flow(`the list of ${shape} shows hostile rows as they are`, async (acted) => {
    const parameters = { cols: EVERY_COLUMN, t: "1d", shape };
    const page = await acted.open(acted.seed.people.ann, logsPath(acted, acted.seed.evil, parameters));
    const grid = page.getByRole("grid", { name: shape === "traces" ? "Traces" : "Spans" });
    await grid.waitFor();
    const seen = new Map<string, string>();
    for (let top = 0; seen.size < CORPUS.length && top < 20_000; top += 500) {
      await grid.evaluate((element, to) => element.scrollTo({ top: to }), top);
      await page.waitForTimeout(60);
      const [ids, names] = [await column(grid, "Id"), await column(grid, "Name")];
      for (const [index, id] of ids.entries()) seen.set(id, names[index] ?? "");
      expect(await madeByTexts(page)).toEqual([]);
    }
    expect([...seen.keys()].sort()).toEqual(CORPUS.map((_, index) => `evil-${index}`).sort());
    for (const [index, { text }] of CORPUS.entries()) expect(seen.get(`evil-${index}`), text).toBe(text.slice(0, 200));
    await grid.evaluate((element) => element.scrollTo({ top: 0 }));
    await grid.getByRole("gridcell").nth(3).hover();
    await page.waitForTimeout(600);
    expect(await madeByTexts(page), "the preview").toEqual([]);
  });
}

flow("hostile texts in the filter are conditions or faults, and run nothing", async (acted) => {
  const page = await acted.open(acted.seed.people.ann, demoLogs(acted));
  await traces(page).waitFor();
  const input = page.getByRole("combobox", { name: "Filter", exact: true });
  for (const { text } of CORPUS.filter((attack) => attack.text.length < 2000).filter((_, index) => index % 6 === 0)) {
    await input.fill(text);
    await page.getByRole("option").first().waitFor();
    expect(await madeByTexts(page), text).toEqual([]);
  }
  for (const text of ["'; DROP TABLE x --", "<img src=x onerror=alert(1)>", "name = '<script>alert(1)</script>'"]) {
    await page.goto(demoLogs(acted, { q: text }));
    await page.getByRole("search", { name: "Filter" }).waitFor();
    await page.waitForTimeout(200);
    expect(await madeByTexts(page), text).toEqual([]);
  }
}, [/console: Failed to load resource: .* 400 .*\/btql$/]);

flow("the result of a query shows hostile rows as they are", async (acted) => {
  const query = `SELECT * FROM project_logs('${acted.seed.evil.id}') LIMIT 100`;
  const page = await acted.open(acted.seed.people.ann, queryPath(acted, query));
  const result = page.getByRole("region", { name: "Result" });
  await result.getByRole("grid").waitFor();
  expect(await madeByTexts(page)).toEqual([]);
  await result.getByRole("tab", { name: "JSON" }).click();
  await result.getByRole("region", { name: /^JSON of the result/ }).waitFor();
  expect(await madeByTexts(page)).toEqual([]);
});

/** The forms in which the detail of a span shows its contents. */
const FORMS = ["", "json", "yaml", "markdown", "text", "raw"];

/** The index of the first text of each kind. */
const SOME = [...new Set(CORPUS.map(({ kind }) => kind))].map((kind) => CORPUS.findIndex((attack) => attack.kind === kind));

flow("a trace shows hostile contents as they are, in every form", async (acted) => {
  const context = await acted.enter(acted.seed.people.ann);
  const page = await context.newPage();
  for (const index of SOME) {
    const at = (tab: string): string => tracePath(acted, acted.seed.evil, `evil-${index}`, tab === "" ? {} : { tab });
    await page.goto(at(""));
    await page.getByRole("region", { name: "Input", exact: true }).waitFor();
    for (const form of FORMS) {
      await goWithin(page, at(form));
      await page.getByRole("region", { name: form === "raw" ? "Row" : "Input", exact: true }).waitFor();
      expect(await madeByTexts(page), `${index} ${form} ${CORPUS[index]?.text.slice(0, 80)}`).toEqual([]);
    }
  }
});
