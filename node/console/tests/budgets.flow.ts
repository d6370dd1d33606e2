// Budgets: bytes, requests and nodes must keep to them; times are measured beside a baseline and only printed.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { BrowserContext, Page } from "playwright-core";
import { expect, inject, test } from "vitest";
import { flow } from "./support/flow";
import { logsPath, traces } from "./support/logs";
import { median, print, type Measured } from "./support/times";

const KB = 1024;
const LIMITS = { firstLoad: 90 * KB, shell: 60 * KB, screen: 45 * KB, editor: 130 * KB, all: 520 * KB };
const REQUESTS = 8;
const ROUNDS = 5;

const { dist } = inject("stage").environment;
const assets = join(dist, "assets");

/** The bytes of a file as it travels. */
const gzipped = (name: string): number => gzipSync(readFileSync(join(dist, name)), { level: 9 }).length;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

const isCode = (name: string): boolean => /\.(?:js|css)$/.test(name);

/** The files that the page itself names: the shell. */
function shellFiles(): readonly string[] {
  const page = readFileSync(join(dist, "index.html"), "utf8");
  const named = [...page.matchAll(/\/app\/(assets\/[\w.-]+)/g)].map((match) => match[1] ?? "");
  return [...new Set(named)].filter(isCode);
}

/** The files of each part of the output, by the name that they start with. */
function parts(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const file of readdirSync(assets).filter(isCode)) {
    const name = file.replace(/-[\w-]{8}\.(?:js|css)$/, "");
    found.set(name, [...(found.get(name) ?? []), join("assets", file)]);
  }
  return found;
}

test("the bytes of the shell, of each screen and of everything keep to their budgets", () => {
  const shell = shellFiles();
  const size = sum(shell.map(gzipped));
  const all = sum(readdirSync(assets).filter(isCode).map((name) => gzipped(join("assets", name))));
  const others = [...parts()].map(([name, files]) => ({
    name,
    bytes: sum(files.filter((file) => !shell.includes(file)).map(gzipped)),
  }));
  console.log([`${size} shell`, ...others.map(({ name, bytes }) => `${bytes} ${name}`), `${all} all`].join("\n"));
  expect(size, "shell").toBeLessThanOrEqual(LIMITS.shell);
  expect(all, "all").toBeLessThanOrEqual(LIMITS.all);
  expect(others.filter(({ name, bytes }) => bytes > (name === "editor" ? LIMITS.editor : LIMITS.screen))).toEqual([]);
});

interface Load {
  /** The paths that were asked for before the first rows were there. */
  readonly requests: readonly string[];
  /** When the first rows were there, counted from the start of the navigation. */
  readonly milliseconds: number;
}

/** Notes in the page when a grid first has a row. */
function noteFirstRows(): void {
  const observer = new MutationObserver(() => {
    if (document.querySelector("[role=grid] [role=gridcell]") === null) return;
    performance.mark("first rows");
    observer.disconnect();
  });
  observer.observe(document, { childList: true, subtree: true });
}

/** Loads a page until its first rows, and tells what was asked for and how long it took. */
async function load(page: Page, path: string): Promise<Load> {
  await page.goto(path, { waitUntil: "commit" });
  await traces(page).getByRole("row").nth(1).waitFor();
  return page.evaluate(() => {
    const milliseconds = performance.getEntriesByName("first rows")[0]?.startTime ?? Number.NaN;
    const asked = performance.getEntriesByType("resource").filter((entry) => entry.startTime < milliseconds);
    const requests = [location.pathname, ...asked.map((entry) => new URL(entry.name).pathname)];
    return { requests, milliseconds };
  });
}

flow("the first load of logs keeps to its bytes and requests", async (acted) => {
  const context = await acted.enter(acted.seed.people.ann);
  await context.addInitScript(noteFirstRows);
  const page = await context.newPage();
  const { requests } = await load(page, logsPath(acted, acted.seed.wide));
  const files = [...new Set(requests.filter((path) => path.startsWith("/app/assets/") && isCode(path)))];
  const calls = requests.filter((path) => !path.startsWith("/app/assets/"));
  const bytes = sum(files.map((path) => gzipped(path.replace(/^\/app\//, ""))));
  console.log(`first load of logs: ${bytes} bytes in ${files.length} files, calls ${calls.join(" ")}`);
  expect.soft(bytes).toBeLessThanOrEqual(LIMITS.firstLoad);
  expect.soft(calls.length, calls.join(" ")).toBeLessThanOrEqual(REQUESTS);
});

/** The median time of some rounds. Each gets a browser of its own if it has to be cold. */
async function rounds(run: () => Promise<number>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await run());
  return median(times);
}

const QUERY_LIMIT = 100;

/** How long the same browser needs for a page of almost nothing, and for the query of the list alone. */
async function baselines(context: BrowserContext, project: string): Promise<readonly [number, number]> {
  const page = await context.newPage();
  const empty = await rounds(async () => {
    const started = performance.now();
    await page.goto("/healthz");
    return performance.now() - started;
  });
  await page.goto("/app/sign-in");
  const query = [
    "select: id, created, input, output, metrics, scores, tags",
    `from: project_logs('${project}') summary`,
    `limit: ${QUERY_LIMIT}`,
    "preview_length: 160",
  ].join(" | ");
  const fetched = await rounds(() =>
    page.evaluate(async (text) => {
      const started = performance.now();
      const headers = { "x-assay-console": "1", "content-type": "application/json" };
      const response = await fetch("/btql", { method: "POST", headers, body: JSON.stringify({ query: text }) });
      await response.json();
      return performance.now() - started;
    }, query),
  );
  await page.close();
  return [empty, fetched];
}

flow("times of the list on wide, beside the baseline", async (acted) => {
  const { ann } = acted.seed.people;
  const path = logsPath(acted, acted.seed.wide);
  const measured: Measured[] = [];
  const context = await acted.enter(ann);
  await context.addInitScript(noteFirstRows);
  const [empty, fetched] = await baselines(context, acted.seed.wide.id);
  measured.push({ what: "an empty page", milliseconds: empty });
  measured.push({ what: "the query of the list alone", milliseconds: fetched });
  const cold = await rounds(async () => {
    const fresh = await acted.enter(ann);
    await fresh.addInitScript(noteFirstRows);
    const page = await fresh.newPage();
    const { milliseconds } = await load(page, path);
    await fresh.close();
    return milliseconds;
  });
  const page = await context.newPage();
  await load(page, path);
  const warm = await rounds(async () => (await load(page, path)).milliseconds);
  measured.push({ what: "first rows, cold", milliseconds: cold }, { what: "first rows, warm", milliseconds: warm });
  const filters = [0, 1, 2, 3, 4].map((model) => `metadata.model = 'model-${model}'`);
  const filter = await rounds(async () => {
    const wanted = filters.shift() ?? "";
    return page.evaluate(
      async ([href, label]) => {
        const grid = (): Element | null => document.querySelector(`[role=grid][aria-label=${label}]`);
        const texts = (): string => grid()?.textContent ?? "";
        const before = texts();
        const started = performance.now();
        history.pushState(null, "", href);
        dispatchEvent(new PopStateEvent("popstate"));
        while (texts() === before || grid() === null) await new Promise(requestAnimationFrame);
        return performance.now() - started;
      },
      [logsPath(acted, acted.seed.wide, { q: wanted }), "Traces"] as const,
    );
  });
  measured.push({ what: "filter to rows", milliseconds: filter });
  const steps = await page.evaluate(async () => {
    const grid = document.querySelector("[role=grid]");
    const frames: number[] = [];
    let last = performance.now();
    for (let step = 0; step < 60; step += 1) {
      grid?.scrollBy(0, 25 * 28);
      await new Promise(requestAnimationFrame);
      frames.push(performance.now() - last);
      last = performance.now();
    }
    return frames;
  });
  measured.push({ what: "a frame of scrolling", milliseconds: median(steps) });
  print("times on wide", measured);
}, [/favicon\.ico$/]);
