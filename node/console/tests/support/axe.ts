// Runs axe on a page by the rules of WCAG 2.2, levels A and AA.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { at, listAt } from "./json";

const SOURCE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const ALL = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"] };

/** The rules whose answer depends on the theme, and those on the sizes of what is shown. */
export const BY_THEME = { type: "rule", values: ["color-contrast", "link-in-text-block"] };
export const BY_SIZE = { type: "rule", values: ["target-size", "scrollable-region-focusable"] };

/** What is wrong with a page by some rules, a line each. */
export async function faultsOf(page: Page, rules: typeof ALL = ALL): Promise<readonly string[]> {
  const isThere = await page.evaluate(() => "axe" in window);
  if (!isThere) await page.evaluate(SOURCE);
  const found: unknown = await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(rules)}, resultTypes: ["violations"] })`,
  );
  return listAt(found, "violations").flatMap((rule) =>
    listAt(rule, "nodes").map((node) => {
      const where = String(at(node, "html")).slice(0, 160);
      const what = String(at(node, "failureSummary")).replaceAll(/\s+/g, " ").slice(0, 300);
      return `${String(at(rule, "id"))}: ${what} ${where}`;
    }),
  );
}

/** Whether the page is wider than its window, so that one has to scroll sideways. */
export const isTooWide = (page: Page): Promise<boolean> =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);

/** Waits until the page has been drawn at its present size. */
export const drawn = (page: Page): Promise<void> =>
  page.evaluate(async () => {
    for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
  });
