// How flows look at the screen of logs: by roles and accessible names alone.
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { makeProject, type Project } from "../seed";
import { DEMO_RANGE } from "./demo";
import { PATIENCE, type Flow } from "./flow";

/** The columns in which flows see which rows are there. */
export const ID_COLUMNS = "root_span_id,time,name,input,output";

export function logsPath(flow: Flow, project: Project, parameters: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams({ cols: ID_COLUMNS, ...parameters });
  return `${flow.path("p", project.name, "logs")}?${query.toString()}`;
}

/** The address of the logs of demo over all its time. */
export const demoLogs = (flow: Flow, parameters: Readonly<Record<string, string>> = {}): string =>
  logsPath(flow, flow.seed.demo, { t: DEMO_RANGE, ...parameters });

export const traces = (page: Page): Locator => page.getByRole("grid", { name: "Traces" });

/** The texts of a column, from the first row that is drawn to the last. */
export const column = (grid: Locator, title: string): Promise<readonly string[]> =>
  grid.evaluate((element, wanted) => {
    const heads = [...element.querySelectorAll("[role=columnheader]")];
    const index = heads.findIndex((head) => head.textContent.trim() === wanted);
    const rows = [...element.querySelectorAll("[role=row]")]
      .map((row) => ({ row, at: Number(row.getAttribute("aria-rowindex")) }))
      .filter(({ at }) => at > 1)
      .sort((one, other) => one.at - other.at);
    return rows.map(({ row }) => row.querySelectorAll("[role=gridcell]")[index]?.textContent ?? "");
  }, title);

/** Waits until the list has the traces of these roots and no others. */
export async function expectTraces(page: Page, roots: readonly string[]): Promise<void> {
  const grid = traces(page);
  const seen = async (): Promise<readonly string[]> =>
    (await grid.count()) === 0 ? [] : column(grid, "root_span_id");
  await expect.poll(seen, { timeout: PATIENCE }).toEqual(roots);
}

export const rowOf = (page: Page, root: string): Locator =>
  traces(page)
    .getByRole("row")
    .filter({ has: page.getByRole("gridcell", { name: root, exact: true }) });

/** Presses the tab key until an element has the focus. */
export async function tabTo(page: Page, target: Locator, key = "Tab"): Promise<void> {
  for (let presses = 0; presses < 40; presses += 1) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press(key);
  }
  throw new Error("the tab key does not reach the element");
}

/** Presses the arrow until an option of the open list is the current one. */
export async function arrowTo(page: Page, field: Locator, option: RegExp): Promise<void> {
  for (let presses = 0; presses < 40; presses += 1) {
    const current = await field.evaluate((element) => {
      const id = element.getAttribute("aria-activedescendant");
      return id === null ? "" : (document.getElementById(id)?.textContent ?? "");
    });
    if (option.test(current)) return;
    await page.keyboard.press("ArrowDown");
  }
  throw new Error(`no option ${String(option)}`);
}

/** Shows the filter as text, and applies another one. */
export async function applyText(page: Page, expression: string): Promise<void> {
  const toText = page.getByRole("button", { name: "Show the filter as text" });
  if ((await toText.count()) > 0) await toText.click();
  const line = page.getByRole("combobox", { name: "Filter expression" });
  await line.fill(expression);
  await line.press("Enter");
}

export interface Small {
  readonly id: string;
  /** Milliseconds before now. */
  readonly ago: number;
}

/** A trace of one span. */
export const smallTrace = ({ id, ago }: Small, more: Readonly<Record<string, unknown>> = {}) => {
  const at = Date.now() - ago;
  return {
    id,
    span_id: id,
    root_span_id: id,
    created: new Date(at).toISOString(),
    span_attributes: { name: "chat", type: "task" },
    metrics: { start: at / 1000 - 1, end: at / 1000 },
    input: `question ${id}`,
    output: `answer ${id}`,
    ...more,
  };
};

/** A project that a flow has for itself. */
export const ownProject = (flow: Flow, name: string): Promise<Project> =>
  makeProject(flow.api, `${name}${flow.seed.suffix}`);
