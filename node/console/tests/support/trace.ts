// How flows look at a trace: by roles and accessible names alone.
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import type { Project } from "../seed";
import { PATIENCE, type Flow } from "./flow";

/** The address of a trace's own page. */
export function tracePath(
  flow: Flow,
  project: Project,
  root: string,
  parameters: Readonly<Record<string, string>> = {},
): string {
  const query = new URLSearchParams(parameters).toString();
  return `${flow.path("p", project.name, "trace", root)}${query === "" ? "" : `?${query}`}`;
}

export const tree = (page: Page): Locator => page.getByRole("treegrid", { name: "Spans of the trace" });

/** The texts of the lines that are drawn, from the first to the last. */
export const lines = (page: Page): Promise<readonly string[]> =>
  tree(page).evaluate((element) =>
    [...element.querySelectorAll("[role=row][aria-level]")]
      .sort((one, other) => Number(one.getAttribute("aria-rowindex")) - Number(other.getAttribute("aria-rowindex")))
      .map((row) => row.textContent),
  );

/** Waits until the tree has this number of lines. */
export async function expectLines(page: Page, count: number): Promise<void> {
  await tree(page).waitFor();
  await expect.poll(() => tree(page).getAttribute("aria-rowcount"), { timeout: PATIENCE }).toBe(String(count));
}

/** The line of the selected span. */
export const selected = (page: Page): Locator => tree(page).getByRole("row", { selected: true });

export const countRows = (page: Page): Promise<number> => tree(page).getByRole("row").count();

/** What the address says about the open trace. */
export const inAddress = (page: Page, parameter: string): string | null =>
  new URL(page.url()).searchParams.get(parameter);
