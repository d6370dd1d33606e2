// Times and memory with very much data. Times are printed beside a baseline; counts of nodes and growth of memory fail.
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, vi } from "vitest";
import { WIDE_ROWS, type Project } from "./seed";
import { COMPARED, plantCompared, plantWide } from "./support/bulk";
import { Api } from "./support/api";
import { flow, PATIENCE, type Flow } from "./support/flow";
import { textAt } from "./support/json";
import { logsPath, ownProject, smallTrace, traces } from "./support/logs";
import { experimentsPath, screens } from "./support/screens";
import {
  bound,
  countElements,
  fetched,
  forgetSoon,
  goTo,
  heapOf,
  heldBy,
  inspect,
  KEPT_MS,
  keyFrames,
  listQuery,
  load,
  noteFirstRows,
  opened,
  rounds,
  scrollFrames,
  shareOfLong,
  skeleton,
  SOON_MS,
  type Held,
} from "./support/speed";
import { median, megabytes, milliseconds, percent, Report } from "./support/times";
import { tracePath } from "./support/trace";

vi.setConfig({ testTimeout: 600_000 });

const { base, seed, environment } = inject("stage");
const api = new Api(base, seed.people.ann.key);
const report = new Report();
const FAVICON = /favicon\.ico$/;

/** Rows that a list or a tree may have in the page, and elements that a page may have. */
const ROWS_MAX = 400;
const ELEMENTS_MAX = 6000;
/** How much larger the heap may be after it should be the same. */
const GROWTH_MAX = 1.1;
/** What the heap may have with the long trace open, and what an hour of new rows may add. */
const HEAP_MAX = 120 << 20;
const TAIL_HEAP_MAX = 20 << 20;

let planted = 0;

beforeAll(async () => {
  const started = performance.now();
  await plantWide(api, seed.wide, { from: WIDE_ROWS, to: Math.max(WIDE_ROWS, environment.wideRows) });
  planted = performance.now() - started;
  console.log(`planted ${environment.wideRows} rows of wide in ${milliseconds(planted)}`);
}, 600_000);

afterAll(async () => {
  if (environment.report === null) return;
  const about = await api.call("GET", "/console/about");
  report.keep(environment.report, {
    chromium: environment.chromium,
    server: `assay ${textAt(about, "version")}, ${environment.nodes.length} node, on the same machine`,
    data: `wide has ${environment.wideRows} traces, planted in ${(planted / 1000).toFixed(1)} s; the long trace of big has ${environment.bigSpans} spans`,
  });
});

async function enterNoting(acted: Flow): Promise<BrowserContext> {
  const context = await acted.enter(acted.seed.people.ann);
  await context.addInitScript(noteFirstRows);
  return context;
}

flow("the list of wide: first rows, filter, scroll and j", async (acted) => {
  const path = logsPath(acted, seed.wide);
  const context = await enterNoting(acted);
  const page = await context.newPage();
  const empty = await rounds(async () => {
    const started = performance.now();
    await page.goto("/healthz");
    return performance.now() - started;
  });
  await page.goto("/app/sign-in");
  const all = await rounds(() => fetched(page, "/btql", { query: listQuery(seed.wide, "") }));
  const some = await rounds(() => fetched(page, "/btql", { query: listQuery(seed.wide, "metadata.model = 'model-6'") }));
  const cold = async (rate: number): Promise<number> => {
    const fresh = await enterNoting(acted);
    const first = await fresh.newPage();
    if (rate > 1) await (await inspect(first)).send("Emulation.setCPUThrottlingRate", { rate });
    const { milliseconds: time } = await load(first, path);
    await fresh.close();
    return time;
  };
  const coldTime = await rounds(() => cold(1));
  const slowTime = await rounds(() => cold(4), 3);
  const warm = await rounds(async () => (await load(page, path)).milliseconds);
  const models = [0, 1, 2, 3, 4];
  const filter = await rounds(async () => {
    const model = models.shift() ?? 0;
    const wanted = logsPath(acted, seed.wide, { q: `metadata.model = 'model-${model}'` });
    const before = await traces(page).evaluate((grid) => grid.textContent);
    return page.evaluate(
      async ([href, text]) => {
        const texts = (): string | null => document.querySelector("[role=grid][aria-label=Traces]")?.textContent ?? null;
        const started = performance.now();
        history.pushState(null, "", href);
        dispatchEvent(new PopStateEvent("popstate"));
        while (texts() === text || texts() === null) await new Promise(requestAnimationFrame);
        return performance.now() - started;
      },
      [wanted, before] as const,
    );
  });
  await load(page, path);
  const frames = await scrollFrames(page, "[role=grid]", 120);
  const keys = await keyFrames(page, "j", 200);
  const rows = await traces(page).getByRole("row").count();
  const elements = await countElements(page);
  report.add(`The list of ${environment.wideRows.toLocaleString("en-US")} traces`, [
    { what: "first rows, cold", value: milliseconds(coldTime), beside: `an empty page ${milliseconds(empty)}, the query alone ${milliseconds(all)}` },
    { what: "first rows, cold, CPU x4, of 3", value: milliseconds(slowTime), beside: "" },
    { what: "first rows, warm", value: milliseconds(warm), beside: "budget 400 ms on a free machine" },
    { what: "filter to rows", value: milliseconds(filter), beside: `the query alone ${milliseconds(some)}` },
    { what: "a frame of scrolling by 25 rows, of 120", value: milliseconds(median(frames)), beside: `over 32 ms: ${percent(shareOfLong(frames))}` },
    { what: "`j` to the next frame, of 200", value: milliseconds(median(keys)), beside: `the longest ${milliseconds(Math.max(...keys))}` },
    { what: "rows and elements in the page", value: `${rows}, ${elements}`, beside: `at most ${ROWS_MAX}, ${ELEMENTS_MAX}` },
  ]);
  expect.soft(rows).toBeLessThanOrEqual(ROWS_MAX);
  expect.soft(elements).toBeLessThanOrEqual(ELEMENTS_MAX);
}, [FAVICON]);

flow("traces of 100 and of very many spans: rows, scroll, e and memory", async (acted) => {
  const project = await ownProject(acted, "hundred");
  const start = Date.now() - 60_000;
  const spans = Array.from({ length: 100 }, (_, index) => ({
    ...smallTrace({ id: `s-${index}`, ago: 60_000 - index * 10 }),
    root_span_id: "s-0",
    ...(index === 0 ? {} : { span_parents: [`s-${Math.floor((index - 1) / 3)}`] }),
    span_attributes: { name: `step-${index}`, type: "function" },
    metrics: { start: start / 1000 + index / 100, end: start / 1000 + 2 },
  }));
  await acted.api.insert("project_logs", project.id, spans);
  const measured = async (place: Project, root: string, count: number): Promise<readonly [Page, readonly number[]]> => {
    const times: (readonly number[])[] = [];
    for (let round = 0; ; round += 1) {
      const page = await acted.open(acted.seed.people.ann, "/app/welcome");
      await page.getByRole("heading", { level: 1, name: "Send traces" }).waitFor();
      times.push(await goTo(page, tracePath(acted, place, root), opened(count)));
      if (round === 2) return [page, [0, 1].map((index) => median(times.map((time) => time[index] ?? Number.NaN)))];
      await page.context().close();
    }
  };
  const [small, [smallRows = 0, smallAll = 0]] = await measured(project, "s-0", 100);
  const smallQuery = await rounds(() => fetched(small, "/btql", { query: skeleton(project, "s-0") }));
  await small.context().close();
  const { bigSpans } = environment;
  const [page, [bigRows = 0, bigAll = 0]] = await measured(seed.big, "big-0", bigSpans);
  const bigQuery = await fetched(page, "/btql", { query: skeleton(seed.big, "big-0") });
  const session = await inspect(page);
  const heap = await heapOf(session);
  const frames = await scrollFrames(page, "[role=treegrid]", 300);
  await page.getByRole("treegrid").getByRole("row").first().focus();
  const keys = await keyFrames(page, "ArrowDown", 100);
  const rows = await page.getByRole("treegrid").getByRole("row").count();
  const elements = await countElements(page);
  report.add(`Traces of 100 and of ${bigSpans.toLocaleString("en-US")} spans`, [
    { what: "100 spans, first rows, with the code of the screen, of 3", value: milliseconds(smallRows), beside: `its query alone ${milliseconds(smallQuery)}` },
    { what: "100 spans, complete, of 3", value: milliseconds(smallAll), beside: "" },
    { what: `${bigSpans} spans, first rows, of 3`, value: milliseconds(bigRows), beside: `10,000 spans by the query alone ${milliseconds(bigQuery)}` },
    { what: `${bigSpans} spans, complete, of 3`, value: milliseconds(bigAll), beside: "budget 1.5 s on a free machine" },
    { what: `a frame of scrolling by 25 rows, of ${frames.length}`, value: milliseconds(median(frames)), beside: `over 32 ms: ${percent(shareOfLong(frames))}` },
    { what: "an arrow key to the next frame, of 100", value: milliseconds(median(keys)), beside: `the longest ${milliseconds(Math.max(...keys))}` },
    { what: "heap with the long trace open", value: megabytes(heap), beside: `at most ${megabytes(HEAP_MAX)}` },
    { what: "rows and elements in the page", value: `${rows}, ${elements}`, beside: `at most ${ROWS_MAX}, ${ELEMENTS_MAX}` },
  ]);
  expect.soft(rows).toBeLessThanOrEqual(ROWS_MAX);
  expect.soft(elements).toBeLessThanOrEqual(ELEMENTS_MAX);
  expect.soft(heap).toBeLessThanOrEqual(HEAP_MAX);
});

flow("a comparison of 2 x 5,000 rows", async (acted) => {
  const project = await ownProject(acted, "compared");
  await plantCompared(acted.api, project, "before", 5);
  await plantCompared(acted.api, project, "after", 7);
  const times: number[] = [];
  const path = `${experimentsPath(acted, project, "after")}?c=before`;
  const context = await acted.enter(acted.seed.people.ann);
  const page = await context.newPage();
  const asked = new Set<string>();
  page.on("request", (request) => {
    if (new URL(request.url()).pathname === "/console/compare") asked.add(request.postData() ?? "");
  });
  for (let round = 0; round < 3; round += 1) {
    await page.goto("/app/welcome");
    await page.getByRole("heading", { level: 1, name: "Send traces" }).waitFor();
    const [time = Number.NaN] = await goTo(page, path, [{ selector: "[role=grid][aria-label='Compared rows'] [role=gridcell]", count: 20 }]);
    times.push(time);
  }
  const alone: number[] = [];
  for (const body of asked) alone.push(await fetched(page, "/console/compare", JSON.parse(body)));
  const query = Math.max(...alone);
  const frames = await scrollFrames(page, "[role=grid][aria-label='Compared rows']", 120);
  const grid = page.getByRole("grid", { name: "Compared rows" });
  await expect.poll(() => grid.getAttribute("aria-rowcount"), { timeout: PATIENCE }).toBe(String(COMPARED + 1));
  const rows = await grid.getByRole("row").count();
  const elements = await countElements(page);
  report.add("A comparison of 2 x 5,000 rows", [
    { what: "first rows, of 3", value: milliseconds(median(times)), beside: `the slowest of its comparisons alone ${milliseconds(query)}` },
    { what: "a frame of scrolling by 25 rows, of 120", value: milliseconds(median(frames)), beside: `over 32 ms: ${percent(shareOfLong(frames))}` },
    { what: "rows and elements in the page", value: `${rows}, ${elements}`, beside: `at most ${ROWS_MAX}, ${ELEMENTS_MAX}` },
  ]);
  expect.soft(rows).toBeLessThanOrEqual(ROWS_MAX);
  expect.soft(elements).toBeLessThanOrEqual(ELEMENTS_MAX);
});

const RATE = 50;
const BURST_MS = 500;

flow("fifty new rows a second arrive at the top of the list", async (acted) => {
  const { tailSeconds } = environment;
  const project = await ownProject(acted, "tail-speed");
  await acted.api.insert("project_logs", project.id, [smallTrace({ id: "first", ago: 5000 })]);
  const page = await acted.open(acted.seed.people.ann, logsPath(acted, project));
  const grid = traces(page);
  await grid.getByRole("gridcell", { name: "first", exact: true }).waitFor();
  const session = await inspect(page);
  const before = await heapOf(session);
  const total = tailSeconds * RATE;
  const perBurst = (RATE * BURST_MS) / 1000;
  const started = performance.now();
  const late: number[] = [];
  for (let sent = 0; sent < total; sent += perBurst) {
    const due = started + (sent / RATE) * 1000;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    const burst = Array.from({ length: perBurst }, (_, index) => smallTrace({ id: `t-${sent + index}`, ago: perBurst - index }));
    await acted.api.insert("project_logs", project.id, burst);
    late.push(performance.now() - due);
  }
  const sentAt = performance.now();
  await grid.getByRole("gridcell", { name: `t-${total - 1}`, exact: true }).waitFor();
  const shown = performance.now() - sentAt;
  const after = await heapOf(session);
  const rows = await grid.getByRole("row").count();
  const elements = await countElements(page);
  report.add(`${total.toLocaleString("en-US")} new rows at 50 a second`, [
    { what: "the last row is shown after it was acknowledged", value: milliseconds(shown), beside: `a write of ${perBurst} rows alone ${milliseconds(median(late))}` },
    { what: "growth of the heap", value: megabytes(after - before), beside: `at most ${megabytes(TAIL_HEAP_MAX)}; ${megabytes(before)} before` },
    { what: "rows and elements in the page", value: `${rows}, ${elements}`, beside: `at most ${ROWS_MAX}, ${ELEMENTS_MAX}` },
  ]);
  const [counted] = await acted.api.query(`SELECT count(1) AS n FROM project_logs('${project.id}')`);
  expect(counted).toMatchObject({ n: total + 1 });
  expect.soft(after - before).toBeLessThanOrEqual(TAIL_HEAP_MAX);
  expect.soft(rows).toBeLessThanOrEqual(ROWS_MAX);
  expect.soft(elements).toBeLessThanOrEqual(ELEMENTS_MAX);
});

/** The screens that are gone through in turn. */
const ROUND = ["home", "logs", "trace", "experiments", "comparison", "datasets", "dataset", "monitor", "query", "welcome"];

flow("ten screens, time after time: what the page holds stays", async (acted) => {
  const all = screens(acted).filter((screen) => ROUND.includes(screen.name));
  expect(all.map((screen) => screen.name).sort()).toEqual([...ROUND].sort());
  const context = await acted.enter(acted.seed.people.ann);
  await context.addInitScript(forgetSoon, KEPT_MS);
  const page = await context.newPage();
  await page.goto(acted.path());
  const session = await inspect(page);
  const heaps: number[] = [];
  const go = async (times: number): Promise<Held> => {
    for (let time = 0; time < times; time += 1) {
      for (const screen of all) {
        await goTo(page, screen.path, []);
        await screen.ready(page).waitFor();
      }
      heaps.push(await heapOf(session));
    }
    await page.waitForTimeout(3 * SOON_MS);
    return heldBy(session);
  };
  // The browser keeps the nodes of one screen that was left, or none. What grows is more than that in both of the last times.
  const before = bound([await go(2), await go(1)], Math.max);
  const after = bound([await go(3), await go(1)], Math.min);
  const row = (what: string, show: (value: number) => string, of: (held: Held) => number) => ({
    what: `${what} after six and seven times, the smaller`,
    value: show(of(after)),
    beside: `after two and three times, the larger, ${show(of(before))}; at most 10 % more`,
  });
  report.add("Ten screens, seven times", [
    row("objects", megabytes, ({ bytes }) => bytes),
    row("nodes", String, ({ nodes }) => nodes),
    row("listeners", String, ({ listeners }) => listeners),
    { what: "the whole heap after each time", value: heaps.map(megabytes).join(", "), beside: "with compiled code and what the inspector keeps; not asserted" },
  ]);
  expect.soft(after.bytes / before.bytes, "objects").toBeLessThanOrEqual(GROWTH_MAX);
  expect.soft(after.nodes / before.nodes, "nodes").toBeLessThanOrEqual(GROWTH_MAX);
  expect.soft(after.listeners / before.listeners, "listeners").toBeLessThanOrEqual(GROWTH_MAX);
});
