// How people open a dialog, a panel or a menu, and how it is found once it is open.
import type { Locator, Page } from "playwright-core";

export type Opening = (page: Page) => Promise<void>;
export type Finding = (page: Page) => Locator;

/** Something that a screen opens: its name in reports, how it is opened, and what is shown then. */
export type Row = readonly [name: string, open: Opening, shown: Finding];

export const button =
  (name: string | RegExp): Opening =>
  (page) =>
    page.getByRole("button", { name, ...(typeof name === "string" ? { exact: true } : {}) }).first().click();

/** Chooses an item of the menu that a button opens. */
export const item =
  (name: string | RegExp, title: string | RegExp): Opening =>
  async (page) => {
    await button(name)(page);
    await page.getByRole("menuitem", { name: title }).click();
  };

export const keys =
  (...pressed: readonly string[]): Opening =>
  async (page) => {
    for (const key of pressed) await page.keyboard.press(key);
  };

/** Runs a command of the palette. */
export const command =
  (title: string): Opening =>
  async (page) => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to or do" }).fill(title);
    await page.getByRole("option", { name: title }).first().waitFor();
    await page.keyboard.press("Enter");
  };

/** Does several things one after the other. */
export const inTurn =
  (...steps: readonly Opening[]): Opening =>
  async (page) => {
    for (const step of steps) await step(page);
  };

export const tab =
  (name: string): Opening =>
  (page) =>
    page.getByRole("tab", { name }).click();

/** Opens the row of a grid that has a cell with a name. */
export const gridRow =
  (grid: string, cell: RegExp): Opening =>
  (page) =>
    page.getByRole("grid", { name: grid }).getByRole("gridcell", { name: cell }).first().click();

export const dialog =
  (name: string | RegExp): Finding =>
  (page) =>
    page.getByRole("dialog", { name });

/** A region of a dialog, for dialogs that read something after they have opened. */
export const dialogRegion =
  (name: string | RegExp, region: string): Finding =>
  (page) =>
    dialog(name)(page).getByRole("region", { name: region });

export const menu =
  (name: string | RegExp): Finding =>
  (page) =>
    page.getByRole("menu", { name });
