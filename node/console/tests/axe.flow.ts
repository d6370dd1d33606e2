// Visits of every screen, dialog, panel and menu: axe in both themes, several densities, small windows, and hostile names.
import type { Page } from "playwright-core";
import { expect, vi } from "vitest";
import { BY_SIZE, BY_THEME, drawn, faultsOf, isTooWide } from "./support/axe";
import { flow, type Flow, type Wishes } from "./support/flow";
import { madeByTexts } from "./support/inert";
import { enterFor, OPENERS, openOverlay, overlays } from "./support/overlays";
import { NO_ORGANIZATION, screens, type Shown } from "./support/screens";

// Some of these visit every screen, which takes minutes on a busy machine.
vi.setConfig({ testTimeout: 600_000 });

/** Answers 401 of the screens for those who are not signed in. */
const OUTSIDE = /console: Failed to load resource: .* 401 .*\/console\/session$/;

/** Nothing fades in, so that colours are measured as they stay. */
const STILL: Wishes = { reducedMotion: "reduce" };

/** The screens that are looked at in every density. */
const DENSE = ["home", "logs", "comparison", "dataset", "query", "welcome", "not found"];

/** The screens that axe looks at in the narrowest window, opened in it. */
const SMALL = ["sign in", "home", "logs", "comparison with an open pair", "dataset"];

/** Small windows: a phone, and a window of 1280 px at 200 %. */
const WINDOWS = [
  { name: "320 px", width: 320, height: 640 },
  { name: "1280 px at 200 %", width: 640, height: 400 },
];

/** Opens screens in two browsers, of Ann and of nobody. */
function visitor(acted: Flow, wishes: Wishes): (shown: Shown) => Promise<Page> {
  const inside = acted.enter(acted.seed.people.ann, wishes);
  const outside = acted.enter(null, wishes);
  return async (shown) => {
    const page = await (await (shown.isInside ? inside : outside)).newPage();
    await page.goto(shown.path);
    await shown.ready(page).waitFor();
    return page;
  };
}

/** What is wrong with what a page shows, in both themes. Among the names around it are hostile ones. */
async function faultsInThemes(page: Page): Promise<readonly string[]> {
  const made = (await madeByTexts(page)).map((what) => `made by a text: ${what}`);
  const dark = await faultsOf(page);
  await page.emulateMedia({ colorScheme: "light" });
  return [...made, ...dark, ...(await faultsOf(page, BY_THEME))];
}

/** What is wrong with an open screen in both themes, and then in small windows. */
async function faultsOfScreen(page: Page): Promise<readonly string[]> {
  const found: string[] = [...(await faultsInThemes(page))];
  for (const { name, ...size } of WINDOWS) {
    await page.setViewportSize(size);
    await drawn(page);
    if (await isTooWide(page)) found.push(`${name}: too wide`);
  }
  return found;
}

flow(
  "axe finds nothing on any screen in both themes, texts make nothing, and every screen fits small windows",
  async (acted) => {
    const found: Record<string, readonly string[]> = {};
    const visit = visitor(acted, { ...STILL, colorScheme: "dark" });
    for (const shown of screens(acted)) {
      const page = await visit(shown);
      found[shown.name] = await faultsOfScreen(page);
      await page.close();
    }
    expect(found).toEqual(Object.fromEntries(screens(acted).map((shown) => [shown.name, []])));
  },
  [OUTSIDE, NO_ORGANIZATION],
);

flow("screens that open in a narrow window fit it, and axe finds nothing on them", async (acted) => {
  const found: string[] = [];
  const visit = visitor(acted, { ...STILL, viewport: { width: 320, height: 640 } });
  for (const shown of screens(acted).filter(({ name }) => SMALL.includes(name))) {
    const page = await visit(shown);
    const faults = await faultsOf(page);
    found.push(...[...((await isTooWide(page)) ? ["too wide"] : []), ...faults].map((fault) => `${shown.name}: ${fault}`));
    await page.close();
  }
  expect(found).toEqual([]);
}, [OUTSIDE]);

flow("axe finds nothing in the two other densities", async (acted) => {
  const inside = screens(acted).filter((shown) => DENSE.includes(shown.name));
  const visit = visitor(acted, STILL);
  for (const shown of inside) {
    const page = await visit(shown);
    for (const density of ["Compact", "Roomy"]) {
      await page.getByRole("button", { name: "Look of the page" }).click();
      await page.getByRole("menuitemradio", { name: density }).click();
      expect(await faultsOf(page, BY_SIZE), `${shown.name}, ${density}`).toEqual([]);
    }
  }
}, [NO_ORGANIZATION]);

/** How each dialog of the frame and the home is opened, by key. */
const DIALOGS: readonly (readonly [string, string])[] = [
  ["Keys", "?"],
  ["Go to or do", "Control+k"],
  ["New project", "n"],
];

flow("the opener of a closed dialog has the focus again", async (acted) => {
  const page = await acted.open(acted.seed.people.ann, acted.path(), STILL);
  await page.getByRole("grid", { name: "Projects" }).waitFor();
  const row = page.getByRole("row").nth(1);
  await row.focus();
  for (const [name, key] of DIALOGS) {
    await page.keyboard.press(key);
    const dialog = page.getByRole("dialog", { name });
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await row.evaluate((element) => element === document.activeElement), name).toBe(true);
  }
});

for (const screen of OPENERS) {
  flow(`axe finds nothing in the dialogs, panels and menus of ${screen}, in both themes, and texts make nothing`, async (acted) => {
    const found: Record<string, readonly string[]> = {};
    const context = await enterFor(acted, screen, { ...STILL, colorScheme: "dark" });
    for (const overlay of overlays(acted, screen)) {
      const page = await openOverlay(context, overlay);
      found[overlay.name] = await faultsInThemes(page);
      await page.close();
    }
    expect(found).toEqual(Object.fromEntries(Object.keys(found).map((name) => [name, []])));
  });
}

flow("in a narrow window, the screens open from a drawer", async (acted) => {
  const page = await acted.open(acted.seed.people.ann, acted.path(), { ...STILL, viewport: { width: 320, height: 640 } });
  await page.getByRole("button", { name: "Show the screens" }).click();
  const drawer = page.getByRole("dialog", { name: "Assay" });
  await drawer.waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await drawer.getByRole("link", { name: "Send traces" }).click();
  await page.getByRole("heading", { level: 1, name: "Send traces" }).waitFor();
});
