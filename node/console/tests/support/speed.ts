// How times and sizes are measured in a page.
import type { CDPSession, Page } from "playwright-core";
import type { Project } from "../seed";
import { listAt } from "./json";
import { traces } from "./logs";
import { median } from "./times";

export interface Load {
  /** The paths that were asked for before the first rows were there. */
  readonly requests: readonly string[];
  /** When the first rows were there, counted from the start of the navigation. */
  readonly milliseconds: number;
}

/** Notes in the page when a grid first has a row. */
export function noteFirstRows(): void {
  const observer = new MutationObserver(() => {
    if (document.querySelector("[role=grid] [role=gridcell]") === null) return;
    performance.mark("first rows");
    observer.disconnect();
  });
  observer.observe(document, { childList: true, subtree: true });
}

/** Loads a page until its first rows, and tells what was asked for and how long it took. */
export async function load(page: Page, path: string): Promise<Load> {
  await page.goto(path, { waitUntil: "commit" });
  await traces(page).getByRole("row").nth(1).waitFor();
  return page.evaluate(() => {
    const milliseconds = performance.getEntriesByName("first rows")[0]?.startTime ?? Number.NaN;
    const asked = performance.getEntriesByType("resource").filter((entry) => entry.startTime < milliseconds);
    const requests = [location.pathname, ...asked.map((entry) => new URL(entry.name).pathname)];
    return { requests, milliseconds };
  });
}

export const ROUNDS = 5;

/** The median time of some rounds. */
export async function rounds(run: () => Promise<number>, count = ROUNDS): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < count; round += 1) times.push(await run());
  return median(times);
}

/** When elements are there: so many that a selector finds, or one of them with a text in an attribute. */
export interface Shown {
  readonly selector: string;
  readonly count?: number;
  readonly attribute?: readonly [name: string, value: string];
}

/** Goes to another address within the page, and returns after how many milliseconds each of some things was shown. */
export const goTo = (page: Page, path: string, wanted: readonly Shown[]): Promise<readonly number[]> =>
  page.evaluate(
    async ([href, all]) => {
      const isThere = ({ selector, count = 1, attribute }: Shown): boolean => {
        const found = [...document.querySelectorAll(selector)];
        return found.length >= count && (attribute === undefined || found.some((one) => one.getAttribute(attribute[0]) === attribute[1]));
      };
      const started = performance.now();
      history.pushState(null, "", href);
      dispatchEvent(new PopStateEvent("popstate"));
      const times: number[] = [];
      for (const one of all) {
        while (!isThere(one) && performance.now() - started < 60_000) await new Promise(requestAnimationFrame);
        times.push(isThere(one) ? performance.now() - started : Number.NaN);
      }
      return times;
    },
    [path, wanted] as const,
  );

/** Milliseconds of each frame while an element scrolls by 25 rows a frame. */
export const scrollFrames = (page: Page, selector: string, frames: number): Promise<readonly number[]> =>
  page.evaluate(
    async ([wanted, count]) => {
      const element = document.querySelector(wanted);
      const found: number[] = [];
      let last = await new Promise<number>(requestAnimationFrame);
      for (let frame = 0; frame < count; frame += 1) {
        element?.scrollBy(0, 25 * 28);
        const now = await new Promise<number>(requestAnimationFrame);
        found.push(now - last);
        last = now;
      }
      return found;
    },
    [selector, frames] as const,
  );

/** Milliseconds from each press of a key until the frame that follows it. */
export const keyFrames = (page: Page, key: string, presses: number): Promise<readonly number[]> =>
  page.evaluate(
    async ([pressed, count]) => {
      const found: number[] = [];
      for (let press = 0; press < count; press += 1) {
        const started = performance.now();
        (document.activeElement ?? document.body).dispatchEvent(
          new KeyboardEvent("keydown", { key: pressed, bubbles: true, cancelable: true }),
        );
        await new Promise(requestAnimationFrame);
        await new Promise((resolve) => setTimeout(resolve));
        found.push(performance.now() - started);
      }
      return found;
    },
    [key, presses] as const,
  );

export const countElements = (page: Page): Promise<number> => page.evaluate(() => document.querySelectorAll("*").length);

export const inspect = (page: Page): Promise<CDPSession> => page.context().newCDPSession(page);

/** The bytes that a page has in use after a collection: its objects, its nodes, and the buffers of its arrays. */
export async function heapOf(session: CDPSession): Promise<number> {
  for (let time = 0; time < 2; time += 1) await session.send("HeapProfiler.collectGarbage");
  const { usedSize, embedderHeapUsedSize, backingStorageSize } = await session.send("Runtime.getHeapUsage");
  return usedSize + embedderHeapUsedSize + backingStorageSize;
}

/** What a page holds itself: the bytes of its objects, and how many nodes and listeners it has. */
export interface Held {
  readonly bytes: number;
  readonly nodes: number;
  readonly listeners: number;
}

/** Kinds of the heap that are not the page's own: compiled code grows while it is used, and the inspector keeps records. */
const NOT_HELD = ["code", "native"];

async function bytesOfObjects(session: CDPSession): Promise<number> {
  const chunks: string[] = [];
  const add = ({ chunk }: { readonly chunk: string }): number => chunks.push(chunk);
  session.on("HeapProfiler.addHeapSnapshotChunk", add);
  await session.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  session.off("HeapProfiler.addHeapSnapshotChunk", add);
  const snapshot: unknown = JSON.parse(chunks.join(""));
  const fields = listAt(snapshot, "snapshot", "meta", "node_fields");
  const kinds = listAt(snapshot, "snapshot", "meta", "node_types", 0).map(String);
  const [kindAt, sizeAt] = [fields.indexOf("type"), fields.indexOf("self_size")];
  const numbers = listAt(snapshot, "nodes");
  let bytes = 0;
  for (let node = 0; node < numbers.length; node += fields.length) {
    if (!NOT_HELD.includes(kinds[Number(numbers[node + kindAt])] ?? "")) bytes += Number(numbers[node + sizeAt]);
  }
  return bytes;
}

/** Joins what a page held at several times, measure by measure. */
export const bound = (all: readonly Held[], choose: (...values: number[]) => number): Held => ({
  bytes: choose(...all.map(({ bytes }) => bytes)),
  nodes: choose(...all.map(({ nodes }) => nodes)),
  listeners: choose(...all.map(({ listeners }) => listeners)),
});

/** How often collections are tried at most, and the pause after each: what one of them releases, another one frees. */
const COLLECTIONS_MAX = 8;
const COLLECTION_PAUSE_MS = 250;

async function nodesAndListeners(session: CDPSession): Promise<readonly [number, number]> {
  const { metrics } = await session.send("Performance.getMetrics");
  const of = (name: string): number => metrics.find((metric) => metric.name === name)?.value ?? Number.NaN;
  return [of("Nodes"), of("JSEventListeners")];
}

/** What a page holds after collections, once another one frees nothing more. */
export async function heldBy(session: CDPSession): Promise<Held> {
  await session.send("Performance.enable");
  let [nodes, listeners] = [Infinity, Infinity];
  for (let time = 0; time < COLLECTIONS_MAX; time += 1) {
    await heapOf(session);
    const [nodesNow, listenersNow] = await nodesAndListeners(session);
    if (nodesNow >= nodes && listenersNow >= listeners) break;
    [nodes, listeners] = [Math.min(nodes, nodesNow), Math.min(listeners, listenersNow)];
    await new Promise((resolve) => setTimeout(resolve, COLLECTION_PAUSE_MS));
  }
  return { bytes: await bytesOfObjects(session), nodes, listeners };
}

/** The time of a query from a page, without anything of the console. */
export const fetched = (page: Page, path: string, body: unknown): Promise<number> =>
  page.evaluate(
    async ([address, sent]) => {
      const started = performance.now();
      const headers = { "x-assay-console": "1", "content-type": "application/json" };
      const response = await fetch(address, { method: "POST", headers, body: sent });
      await response.text();
      return response.ok ? performance.now() - started : Number.NaN;
    },
    [path, JSON.stringify(body)] as const,
  );

export const listQuery = (project: Project, filter: string): string =>
  [
    "select: id, created, input, output, metrics, scores, tags",
    `from: project_logs('${project.id}') summary`,
    ...(filter === "" ? [] : [`filter: ${filter}`]),
    "limit: 100",
    "preview_length: 160",
  ].join(" | ");

/** The share of frames that people see as a stutter. */
export const shareOfLong = (frames: readonly number[]): number => frames.filter((frame) => frame > 32).length / frames.length;

/** The query of a trace's tree. */
export const skeleton = (project: Project, root: string): string =>
  `SELECT id, span_id, span_parents, is_root, created, span_attributes, metrics, scores, tags, error IS NOT NULL AS failed ` +
  `FROM project_logs('${project.id}') WHERE root_span_id = '${root}' ORDER BY _pagination_key LIMIT 10000`;

/** When the tree has its first lines, and when it has all of them. */
export const opened = (spans: number) => [
  { selector: "[role=treegrid] [role=row]", count: 10 },
  { selector: "[role=treegrid]", attribute: ["aria-rowcount", String(spans)] as const },
];

/** How long answers of the server are kept in the page after nobody shows them any more, and how long in this flow. */
export const KEPT_MS = 300_000;
export const SOON_MS = 1000;

/** Lets the page forget answers soon that it keeps for minutes, so that what stays is what it never lets go. */
export function forgetSoon(kept: number): void {
  const wait = window.setTimeout.bind(window);
  const soon = (run: TimerHandler, delay?: number, ...given: unknown[]): number => wait(run, delay === kept ? 1000 : delay, ...given);
  Object.assign(window, { setTimeout: soon });
}
