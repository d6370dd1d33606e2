// Takes a picture of every screen: full in both themes and two widths, and empty, loading and failed. People look at them.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContext, Page } from "playwright-core";
import { expect } from "vitest";
import { flow, type Flow } from "../support/flow";
import { drawn } from "../support/axe";
import { ownProject } from "../support/logs";
import { enterFor, OPENERS, openOverlay, overlays } from "../support/overlays";
import { screens, type Shown } from "../support/screens";

const WIDTHS = [
  { width: 1400, height: 900 },
  { width: 390, height: 844 },
];
const SCHEMES = ["dark", "light"] as const;

/** What every screen needs before its own reads: the page, who asks, and the project of the address. */
const OF_THE_FRAME = /^\/(?:app\/|console\/(?:session|about|projects)|v1\/project$)/;
/** How long a screen is given to draw what it shows while it waits, or after a failure. */
const SETTLED_MS = 1500;
const REFUSED = /console: Failed to load resource/;

/** Returns the folder of the pictures. */
function folder(acted: Flow): string {
  const { shots } = acted.stage.environment;
  if (shots === null) throw new Error("set ASSAY_FLOWS_SHOTS to the folder for the pictures");
  mkdirSync(shots, { recursive: true });
  return shots;
}

const fileName = (...parts: readonly (string | number)[]): string =>
  `${parts.join("-").replaceAll(/[^\w]+/g, "-").toLowerCase()}.png`;

async function take(acted: Flow, page: Page, ...parts: readonly (string | number)[]): Promise<void> {
  await drawn(page);
  await page.screenshot({ path: join(folder(acted), fileName(...parts)) });
}

/** Takes an open page in both themes and both widths. */
async function takeAll(acted: Flow, page: Page, name: string): Promise<void> {
  for (const size of WIDTHS) {
    await page.setViewportSize(size);
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      await take(acted, page, name, size.width, colorScheme);
    }
  }
}

/** Opens a screen whose own requests are held or refused. */
async function openWithout(context: BrowserContext, shown: Shown, state: "loading" | "failed"): Promise<Page> {
  const page = await context.newPage();
  await page.route(
    ({ pathname }) => !OF_THE_FRAME.test(pathname),
    async (route) => {
      if (state === "loading") return;
      const body = JSON.stringify({ error: { kind: "unavailable", message: "no leader of the shard answers; try again" } });
      await route.fulfill({ status: 503, contentType: "application/json", body });
    },
  );
  await page.goto(shown.path);
  await page.waitForTimeout(SETTLED_MS);
  return page;
}

flow("every screen, full", async (acted) => {
  const inside = await acted.enter(acted.seed.people.ann, { reducedMotion: "reduce" });
  const outside = await acted.enter(null, { reducedMotion: "reduce" });
  for (const shown of screens(acted)) {
    const page = await (shown.isInside ? inside : outside).newPage();
    await page.goto(shown.path);
    await shown.ready(page).waitFor();
    await takeAll(acted, page, shown.name);
    await page.close();
  }
}, [REFUSED]);

for (const state of ["loading", "failed"] as const) {
  flow(`every screen, ${state}`, async (acted) => {
    const context = await acted.enter(acted.seed.people.ann, { reducedMotion: "reduce", colorScheme: "dark" });
    for (const shown of screens(acted).filter((one) => one.isInside)) {
      const page = await openWithout(context, shown, state);
      await take(acted, page, state, shown.name);
      await page.unrouteAll({ behavior: "ignoreErrors" });
      await page.close();
    }
  }, [REFUSED]);
}

for (const screen of OPENERS) {
  flow(`the dialogs, panels and menus of ${screen}`, async (acted) => {
    const context = await enterFor(acted, screen, { reducedMotion: "reduce", colorScheme: "light" });
    for (const overlay of overlays(acted, screen)) {
      const page = await openOverlay(context, overlay);
      await take(acted, page, "dialog", screen, overlay.name);
      await page.close();
    }
  });
}

/** The screens of a project, by the last part of their address. */
const OF_A_PROJECT = ["logs", "experiments", "datasets", "prompts", "functions", "playgrounds", "monitor", "review"];

flow("the screens of a project that has nothing", async (acted) => {
  const project = await ownProject(acted, "empty");
  const page = await acted.open(acted.seed.people.ann, acted.path(), { reducedMotion: "reduce", colorScheme: "light" });
  for (const part of OF_A_PROJECT) {
    await page.goto(acted.path("p", project.name, part));
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await page.waitForTimeout(SETTLED_MS);
    expect(await page.getByRole("alert").count(), part).toBe(0);
    await take(acted, page, "empty", part);
  }
});
