// Accessibility: every screen in both themes, several in three densities, dialogs, and small windows.
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { BY_SIZE, BY_THEME, faultsOf, isTooWide } from "./support/axe";
import { flow, type Flow, type Wishes } from "./support/flow";
import { NO_ORGANIZATION, screens, type Shown } from "./support/screens";

/** Answers 401 of the screens for those who are not signed in. */
const OUTSIDE = /console: Failed to load resource: .* 401 .*\/console\/session$/;

/** Nothing fades in, so that colours are measured as they stay. */
const STILL: Wishes = { reducedMotion: "reduce" };

/** The screens that are looked at in every density. */
const DENSE = ["home", "logs", "comparison", "dataset", "query", "welcome", "not found"];

/** The screens that axe looks at in small windows. */
const SMALL = ["sign in", "home", "logs", "comparison with an open pair", "dataset"];

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

for (const colorScheme of ["dark", "light"] as const) {
  flow(
    `axe finds nothing on any screen, ${colorScheme}`,
    async (acted) => {
      const found: Record<string, readonly string[]> = {};
      const visit = visitor(acted, { ...STILL, colorScheme });
      for (const shown of screens(acted)) {
        const page = await visit(shown);
        found[shown.name] = await faultsOf(page, ...(colorScheme === "dark" ? [] : [BY_THEME]));
        await page.close();
      }
      expect(found).toEqual(Object.fromEntries(screens(acted).map((shown) => [shown.name, []])));
    },
    [OUTSIDE, NO_ORGANIZATION],
  );
}

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

for (const colorScheme of ["dark", "light"] as const) {
  flow(`axe finds nothing with a dialog open, and its opener has the focus again, ${colorScheme}`, async (acted) => {
    const page = await acted.open(acted.seed.people.ann, acted.path(), { ...STILL, colorScheme });
    await page.getByRole("grid", { name: "Projects" }).waitFor();
    const row = page.getByRole("row").nth(1);
    await row.focus();
    for (const [name, key] of DIALOGS) {
      await page.keyboard.press(key);
      const dialog = page.getByRole("dialog", { name });
      await dialog.waitFor();
      expect(await faultsOf(page), name).toEqual([]);
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      expect(await row.evaluate((element) => element === document.activeElement), name).toBe(true);
    }
    await page.getByRole("button", { name: /^Signed in as/ }).click();
    await page.getByRole("menuitem", { name: "Sign out everywhere" }).waitFor();
    expect(await faultsOf(page), "menu").toEqual([]);
  });
}

/** Small windows: a phone, and a window of 1280 px at 200 %. */
const WINDOWS: readonly (readonly [string, Wishes])[] = [
  ["320 px", { viewport: { width: 320, height: 640 } }],
  ["1280 px at 200 %", { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 }],
];

for (const [name, window] of WINDOWS) {
  flow(
    `screens fit ${name}`,
    async (acted) => {
      const found: string[] = [];
      const visit = visitor(acted, { ...STILL, ...window });
      for (const shown of screens(acted)) {
        const page = await visit(shown);
        const faults = name === "320 px" && SMALL.includes(shown.name) ? await faultsOf(page) : [];
        const all = (await isTooWide(page)) ? ["too wide", ...faults] : faults;
        found.push(...all.map((fault) => `${shown.name}: ${fault}`));
        await page.close();
      }
      expect(found).toEqual([]);
    },
    [OUTSIDE, NO_ORGANIZATION],
  );
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
