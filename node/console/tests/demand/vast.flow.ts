// First rows and facets of a project with very many spans, in browsers that have nothing cached.
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { Page } from "playwright-core";
import { beforeAll, expect, inject, vi } from "vitest";
import { WIDE_ROWS } from "../seed";
import { Api } from "../support/api";
import { plantWide } from "../support/bulk";
import { flow } from "../support/flow";
import { logsPath } from "../support/logs";
import { fetched, listQuery, load, noteFirstRows } from "../support/speed";
import { milliseconds } from "../support/times";

const { base, seed, environment } = inject("stage");
const api = new Api(base, seed.people.ann.key);
const ROUNDS = 12;
/** Without a compaction for this long, there is none to come. */
const QUIET_MS = 30_000;
const HOURS_MS = 4 * 3_600_000;

vi.setConfig({ testTimeout: HOURS_MS });

/** Reads the metrics. They are refused to browsers, and so to `fetch`, which sends the headers of one. */
async function metrics(): Promise<string> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${base}/metrics`, resolve).once("error", reject);
  });
  expect(response.statusCode).toBe(200);
  return text(response);
}

/** Returns how many segments await their compaction, and how many compactions there were. */
async function compactions(): Promise<string> {
  return ((await metrics()).match(/^assay_(?:segments_whole|compactions_total) \d+$/gm) ?? []).join(", ");
}

/** Waits until the server has nothing to compact: most rows of a project are old, and people look at them for long. */
async function compacted(): Promise<void> {
  const isDone = (state: string): boolean => state.startsWith("assay_segments_whole 0,");
  let before = "";
  for (let now = await compactions(); now !== before || !isDone(now); now = await compactions()) {
    before = now;
    await new Promise((next) => setTimeout(next, QUIET_MS));
  }
}

beforeAll(async () => {
  const started = performance.now();
  await plantWide(api, seed.wide, { from: WIDE_ROWS, to: Math.max(WIDE_ROWS, environment.wideRows) });
  console.log(`planted ${environment.wideRows.toLocaleString("en-US")} spans in ${Math.round((performance.now() - started) / 1000)} s`);
  await compacted();
  console.log(`compacted after ${Math.round((performance.now() - started) / 1000)} s`);
}, HOURS_MS);

/** Waits for the counts of all facets, and returns when they were there, counted from the start of the navigation. */
async function facetsShown(page: Page): Promise<number> {
  const facets = page.getByRole("complementary", { name: "Facets" });
  await facets.getByRole("button", { name: /^Without errors, [\d,.]+\w? traces$/ }).waitFor();
  for (const path of ["metadata.model", "span_attributes.type"]) {
    await facets.getByRole("list", { name: `Values of ${path}` }).getByRole("button", { name: / traces$/ }).first().waitFor();
  }
  return page.evaluate(() => performance.now());
}

const quarter = (times: readonly number[]): number =>
  [...times].sort((one, other) => one - other)[Math.ceil(times.length * 0.75) - 1] ?? Number.NaN;

const line = (what: string, times: readonly number[]): string =>
  `${milliseconds(quarter(times)).padStart(9)}  p75 of ${what}: ${times.map((time) => Math.round(time)).join(", ")}`;

flow("first rows and facets of very many spans", async (acted) => {
  const path = logsPath(acted, seed.wide);
  const [rows, facets, alone]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    const context = await acted.enter(acted.seed.people.ann);
    await context.addInitScript(noteFirstRows);
    const page = await context.newPage();
    rows.push((await load(page, path)).milliseconds);
    facets.push(await facetsShown(page));
    alone.push(await fetched(page, "/btql", { query: listQuery(seed.wide, "") }));
    await context.close();
  }
  const [counted] = await acted.api.query(`SELECT count(1) AS n FROM project_logs('${seed.wide.id}')`);
  const all = [line("first rows", rows), line("facets", facets), line("the query of the list alone", alone)];
  console.log([`${JSON.stringify(counted)} spans, ${ROUNDS} loads`, ...all].join("\n"));
  expect(counted).toMatchObject({ n: Math.max(WIDE_ROWS, environment.wideRows) });
});
