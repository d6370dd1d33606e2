// Every dialog, panel and menu that a screen opens, with how people open it.
import type { BrowserContext, Page } from "playwright-core";
import type { Flow, Wishes } from "./flow";
import { demoLogs, traces } from "./logs";
import { button, command, dialog, item, keys, menu, type Finding, type Opening, type Row } from "./openings";
import { PLAYGROUND, PLAYGROUNDS, PROMPT, PROMPTS, REVIEW, REVIEW_OF_A_ROW, SCORES } from "./overlays-prompts";
import * as settings from "./overlays-settings";
import { screens, type Shown } from "./screens";

export interface Overlay {
  readonly name: string;
  /** The screen that opens it. */
  readonly on: Shown;
  readonly open: Opening;
  readonly shown: Finding;
}

/** Selects the first two rows of a grid by keys, and presses a button that acts on them. */
const onSelected =
  (name: RegExp): Opening =>
  async (page) => {
    await keys("j", "x", "j", "x")(page);
    await page.getByRole("toolbar", { name: "Selected rows" }).getByRole("button", { name }).click();
  };

const LOGS: readonly Row[] = [
  ["range of time", button(/^Range of time/), dialog("Range of time")],
  ["display of the list", button("Display"), dialog("Display")],
  ["view of the list", button(/^View/), menu(/^View/)],
  ["new view", item(/^View/, /Save as a new view/), dialog("Save as a new view")],
  ["export of the list", button("Export what the filter finds"), menu("Export what the filter finds")],
  ["explanation of a difference", button(/^Explain/), (page) => page.getByRole("group", { name: "What is explained" })],
  ["earlier state of the list", command("Show an earlier state"), dialog("Read rows as of")],
  ["score of rows", onSelected(/^Score/), dialog(/^Score /)],
  ["assignment of rows", onSelected(/^Assign/), dialog(/^Assign /)],
  ["tags of rows", onSelected(/^Tag/), dialog(/^Tag /)],
  ["rows to a dataset", onSelected(/dataset/i), dialog(/to a dataset$/)],
  ["deletion of rows", onSelected(/^Delete/), dialog(/^Delete /)],
];

const TRACE: readonly Row[] = [
  ["actions of a trace", button("Actions"), menu("Actions of the trace")],
  ["span to a dataset", keys("d"), dialog("Add the span to a dataset")],
];

const EXPERIMENTS: readonly Row[] = [
  ["details of an experiment", item("Actions of X2", "Name, tags and metadata"), dialog("Details of X2")],
  ["deletion of an experiment", item("Actions of X2", "Delete"), dialog("Delete X2?")],
  ["earlier state of experiments", button("Show an earlier state"), dialog("Read rows as of")],
];

const COMPARISON: readonly Row[] = [
  ["order of a comparison", button(/^Regressions first/), menu(/^Order/)],
  ["another experiment", keys("+"), dialog("Compare with")],
  ["group of a comparison", command("Group by a path"), dialog("Group by")],
  ["key of a comparison", item("Export, time and pairing", "Change what pairs rows"), dialog("Change what pairs rows")],
];

const DATASET: readonly Row[] = [
  ["versions of a dataset", button("Versions"), dialog("Versions of DS1")],
  ["details of a dataset", item("More", "Name, description and metadata"), dialog("Name and description of DS1")],
  ["code of a dataset", item("More", "Read it in code"), dialog("Read it in code")],
  ["uses of a dataset", item("More", "Experiments that used it"), dialog("Experiments that used DS1")],
  ["deletion of a dataset", item("More", "Delete the dataset"), dialog("Delete DS1?")],
  ["import into a dataset", keys("i"), dialog("Import rows into DS1")],
];

const MONITOR: readonly Row[] = [
  ["dashboards", button(/^Dashboard/), menu(/^Dashboard/)],
  ["new dashboard", item(/^Dashboard/, /Save as a new dashboard/), dialog("Save as a new dashboard")],
  ["new card", item("Add", /Chart of an expression/), dialog("Add a chart")],
  ["group of the lines", keys("b"), dialog("Group by")],
];

const QUERY: readonly Row[] = [
  ["examples of queries", item("Saved", "Examples"), dialog("Examples")],
  ["saved queries", item("Saved", "Open a saved query"), dialog("Saved queries")],
  ["queries before", button(/^History/), dialog("History")],
  ["long export", item("Export", /long query/), dialog("Long export")],
];

const FRAME: readonly Row[] = [
  ["keys", keys("?"), dialog("Keys")],
  ["palette", keys("Control+k"), dialog("Go to or do")],
  ["new project", keys("n"), dialog("New project")],
  ["look of the page", button("Look of the page"), menu("Look of the page")],
  ["account", button(/^Signed in as/), (page) => page.getByRole("menuitem", { name: "Sign out everywhere" })],
];

/** The list of service tokens, as a program sees it. */
const TOKENS_OF_A_PROGRAM = "service tokens, for a program";

const BY_SCREEN: readonly (readonly [string, readonly Row[]])[] = [
  ["home", FRAME],
  ["logs", LOGS],
  ["trace", TRACE],
  ["experiments", EXPERIMENTS],
  ["comparison", COMPARISON],
  ["datasets", [["new dataset", keys("n"), dialog("New dataset")]]],
  ["dataset", DATASET],
  ["monitor", MONITOR],
  ["query", QUERY],
  ["prompts", PROMPTS],
  ["prompt", PROMPT],
  ["playgrounds", PLAYGROUNDS],
  ["playground with an open column", PLAYGROUND],
  ["review", REVIEW],
  ["review of a row", REVIEW_OF_A_ROW],
  ["scores of a review", SCORES],
  ["members", settings.MEMBERS],
  ["groups", settings.GROUPS],
  ["roles", settings.ROLES],
  ["access", settings.ACCESS],
  ["API keys", settings.KEYS],
  ["service tokens", settings.TOKENS],
  [TOKENS_OF_A_PROGRAM, settings.TOKENS_OF_A_PROGRAM],
  ["AI secrets", settings.SECRETS],
  ["environment variables", settings.VARIABLES],
  ["usage", settings.USAGE],
  ["budgets", settings.BUDGETS],
  ["retention", settings.RETENTION],
];

/** The screens that open something. */
export const OPENERS: readonly string[] = BY_SCREEN.map(([name]) => name);

/** What a screen opens. */
export function overlays(flow: Flow, screen: string): readonly Overlay[] {
  const shownAs = screen === TOKENS_OF_A_PROGRAM ? "service tokens" : screen;
  const found = screens(flow).find((one) => one.name === shownAs);
  const rows = BY_SCREEN.find(([name]) => name === screen)?.[1];
  if (found === undefined || rows === undefined) throw new Error(`no screen is called ${screen}`);
  const on: Shown =
    screen === "logs" ? { ...found, path: demoLogs(flow), ready: (page) => traces(page).getByRole("row").nth(2) } : found;
  return rows.map(([name, open, shown]) => ({ name, on, open, shown }));
}

/** Opens a browser of who opens things on a screen: Ann, or a program where people have no such button. */
export function enterFor(flow: Flow, screen: string, wishes: Wishes = {}): Promise<BrowserContext> {
  const { ann } = flow.seed.people;
  const isProgram = screen === TOKENS_OF_A_PROGRAM;
  return flow.enter(isProgram ? { ...ann, key: flow.stage.environment.serviceToken } : ann, wishes);
}

/** Opens something on a page of its own, and waits until it is there. */
export async function openOverlay(context: BrowserContext, { on, open, shown }: Overlay): Promise<Page> {
  const page = await context.newPage();
  await page.goto(on.path);
  await on.ready(page).waitFor();
  await open(page);
  await shown(page).waitFor();
  return page;
}
