// Hostile texts on every screen: they are shown as what they are, and nothing of them runs.
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { CORPUS, nameAttacks } from "./support/evil";
import { flow } from "./support/flow";
import { column, demoLogs, logsPath, traces } from "./support/logs";
import { NO_ORGANIZATION, queryPath, screens } from "./support/screens";

/** Elements that no screen makes, and attributes that no element has. */
const madeByTexts = (page: Page): Promise<readonly string[]> =>
  page.evaluate(() => {
    const foreign = "iframe:not([sandbox='']), object, embed, base, form[action], script:not([src^='/app/assets/'])";
    const strange = [...document.querySelectorAll(foreign)].map((element) => element.tagName);
    const fetched = [...document.querySelectorAll("link")].map((link) => link.href);
    const outside = fetched.filter((href) => !href.startsWith(`${location.origin}/app/assets/`));
    const handlers = [...document.querySelectorAll("*")].flatMap((element) =>
      [...element.attributes].filter((attribute) => /^on/i.test(attribute.name)).map((attribute) => attribute.name),
    );
    const links = [...document.querySelectorAll("a[href]")]
      .map((link) => link.getAttribute("href") ?? "")
      .filter((href) => !/^(?:\/app|#|https?:\/\/|mailto:)/.test(href));
    return [...strange, ...outside, ...handlers, ...links];
  });

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

flow(
  "no screen makes anything of the names around it",
  async (acted) => {
    const context = await acted.enter(acted.seed.people.ann);
    for (const shown of screens(acted).filter((one) => one.isInside)) {
      const page = await context.newPage();
      await page.goto(shown.path);
      await shown.ready(page).waitFor();
      expect(await madeByTexts(page), shown.name).toEqual([]);
      await page.close();
    }
  },
  [NO_ORGANIZATION],
);
