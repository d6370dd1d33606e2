// Flows 29 to 32: the list of experiments, and their comparison.
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import type { Project } from "../seed";
import { BY_THEME, faultsOf } from "../support/axe";
import { evaluations, makeExperiment, type Evaluation } from "../support/demo";
import { flow, PATIENCE, type Flow } from "../support/flow";
import { expectFocusSeen } from "../support/focus";
import { at, listAt, numberAt } from "../support/json";
import { arrowTo, column, ownProject } from "../support/logs";
import { experimentsPath } from "../support/screens";

const experimentGrid = (page: Page): Locator => page.getByRole("grid", { name: "Experiments" });

const compared = (page: Page): Locator => page.getByRole("grid", { name: "Compared rows" });

/** Waits until a column of a grid has these texts and no others. */
async function expectColumn(grid: Locator, title: string, texts: readonly string[]): Promise<void> {
  const seen = async (): Promise<readonly string[]> => ((await grid.count()) === 0 ? [] : column(grid, title));
  await expect.poll(seen, { timeout: PATIENCE }).toEqual(texts);
}

/** What the server says of the comparison of one experiment with another. */
const comparison = (acted: Flow, main: string, base: string): Promise<unknown> =>
  acted.api.call("POST", "/console/compare", { experiments: [main, base], base });

/** An experiment of a project of the flow's own. */
async function planted(acted: Flow, project: Project, name: string, rows: readonly Evaluation[]): Promise<string> {
  const id = await makeExperiment(acted.api, project, name);
  await acted.api.insert("experiment", id, evaluations(name, rows));
  return id;
}

const colourOf = (text: Locator): Promise<string> => text.evaluate((element) => getComputedStyle(element).color);

/** Expects that a difference has the verdict and the colour of it. */
async function expectVerdict(page: Page, difference: string, verdict: string): Promise<void> {
  const scores = page.getByRole("list", { name: "Scores and metrics" });
  const word = scores.getByText(verdict, { exact: true });
  await word.waitFor();
  expect(await colourOf(scores.getByText(`↑${difference}`)), difference).toBe(await colourOf(word));
}

flow("29 the means of Exact are .667 and .667; a running experiment counts its rows", async (acted) => {
  const { demo, people } = acted.seed;
  const page = await acted.open(people.ann, experimentsPath(acted, demo));
  await expectColumn(experimentGrid(page), "Exact", ["0.67±0.58", "0.67±0.58"]);
  await expectColumn(experimentGrid(page), "Rows", ["3", "3"]);
  const { X1, X2 } = demo.experiments;
  const means = await acted.api.query(
    `SELECT experiment_id, avg(value) AS mean FROM experiment('${X1}', '${X2}', shape => 'summary') ` +
      "UNPIVOT (value FOR score IN (scores)) GROUP BY experiment_id",
  );
  expect(means.map((row) => numberAt(row, "mean").toFixed(3))).toEqual(["0.667", "0.667"]);

  const project = await ownProject(acted, "running");
  const id = await planted(acted, project, "run", [{ question: "1", score: 1 }]);
  await page.goto(experimentsPath(acted, project));
  await expectColumn(experimentGrid(page), "Rows", ["1"]);
  await experimentGrid(page).getByRole("img", { name: "Running" }).waitFor();
  const more = [{ question: "2", score: 0 }, { question: "3", score: 0 }];
  await acted.api.insert("experiment", id, evaluations("more", more));
  await expectColumn(experimentGrid(page), "Rows", ["3"]);
  await expect.poll(async () => (await column(experimentGrid(page), "Exact"))[0]).toMatch(/^0\.33/);
});

flow("30 X2 to X1, by keyboard alone: up 1, down 1, same 1; down leaves 3+3", async (acted) => {
  const { demo, people } = acted.seed;
  const page = await acted.open(people.ann, experimentsPath(acted, demo));
  await expectColumn(experimentGrid(page), "Experiment", ["X2", "X1"]);
  for (const key of ["j", "x", "j", "x"]) await page.keyboard.press(key);
  await page.getByRole("toolbar", { name: "Selected experiments" }).getByText("2 experiments").waitFor();
  await expectFocusSeen(page);
  await page.keyboard.press("Enter");
  await expectColumn(compared(page), "Input", ["3+3", "1+1", "2+2"]);
  const address = new URL(page.url());
  expect([address.pathname, address.searchParams.getAll("c")]).toEqual([experimentsPath(acted, demo, "X2"), ["X1"]]);
  const answer = await comparison(acted, demo.experiments.X2, demo.experiments.X1);
  const counts = at(answer, "comparisons", 0, "scores", "Exact");
  expect(counts).toMatchObject({ up: 1, down: 1, same: 1 });
  for (const kind of ["up", "down", "same"]) {
    expect(await page.getByRole("button", { name: `Exact: 1 ${kind}` }).count(), kind).toBe(1);
  }

  const down = page.getByRole("button", { name: "Exact: 1 down" });
  await down.focus();
  await page.keyboard.press("Enter");
  await expectColumn(compared(page), "Input", ["3+3"]);
  expect(await down.getAttribute("aria-pressed")).toBe("true");
  expect(new URL(page.url()).searchParams.get("only")).toBe("down");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  const pair = page.getByRole("complementary", { name: "Open pair" });
  await pair.getByRole("region", { name: "Input" }).getByText("3+3").waitFor();
  await page.keyboard.press("Escape");
  await pair.waitFor({ state: "detached" });
  await expectFocusSeen(page);
  const focused = compared(page).getByRole("row", { name: /3\+3/ });
  expect(await focused.evaluate((row) => row.contains(document.activeElement))).toBe(true);
});

flow("31 three trials of a question are one row with their spread, unfolded by l; one changed row is undecided", async (acted) => {
  const project = await ownProject(acted, "trials");
  const base = await planted(acted, project, "base", [{ question: "2+2", output: "5", score: 0 }]);
  const trials = [1, 1, 0].map((score) => ({ question: "2+2", output: score === 1 ? "4" : "5", score }));
  const main = await planted(acted, project, "main", trials);
  // Colours that change slowly would be measured on their way.
  const page = await acted.open(acted.seed.people.ann, `${experimentsPath(acted, project, "main")}?c=base`, { reducedMotion: "reduce" });
  await expectColumn(compared(page), "Input", ["2+2"]);
  const [exact = ""] = await column(compared(page), "Exact");
  expect(exact).toMatch(/0\.00 ?→ ?0\.67 ±0\.\d\d/);
  const answer = await comparison(acted, main, base);
  expect(listAt(answer, "rows")).toHaveLength(1);
  await page.keyboard.press("j");
  await page.keyboard.press("l");
  await expect.poll(async () => (await column(compared(page), "Kind")).slice(1)).toEqual(["#1", "#2", "#3"]);
  expect((await column(compared(page), "Exact")).slice(1).map((text) => text.slice(-4))).toEqual(["1.00", "1.00", "0.00"]);
  await page.keyboard.press("h");
  await expectColumn(compared(page), "Input", ["2+2"]);

  await expectVerdict(page, "+0.67", "undecided");
  const plain = await colourOf(page.getByText("undecided", { exact: true }));
  const disagreeing = "Exact: trials of 1 input disagree";
  await page.getByRole("button", { name: disagreeing }).focus();
  await page.keyboard.press("Enter");
  const list = page.getByRole("dialog", { name: disagreeing });
  await list.getByText("0.00 to 1.00 in 3 trials").waitFor();
  const faults = await faultsOf(page);
  await page.emulateMedia({ colorScheme: "dark" });
  expect([...faults, ...(await faultsOf(page, BY_THEME))]).toEqual([]);
  await page.emulateMedia({ colorScheme: "light" });
  await list.getByRole("button", { name: "2+2" }).click();
  await page.getByRole("complementary", { name: "Open pair" }).getByRole("region", { name: "Input" }).getByText("2+2").waitFor();

  const all = [1, 2, 3, 4, 5, 6, 7, 8].map(String);
  await planted(acted, project, "wrong", all.map((question) => ({ question, score: 0 })));
  await planted(acted, project, "right", all.map((question) => ({ question, score: 1 })));
  await page.goto(`${experimentsPath(acted, project, "right")}?c=wrong`);
  await expectVerdict(page, "+1.00", "better");
  expect(await colourOf(page.getByText("better", { exact: true }))).not.toBe(plain);
});

flow("32 outputs differ by words, and groups by level have their means", async (acted) => {
  const project = await ownProject(acted, "words");
  const question = "Who jumps?";
  await planted(acted, project, "before", [{ question, output: "the quick brown fox jumps", score: 1 }]);
  await planted(acted, project, "after", [{ question, output: "the slow brown fox jumps", score: 1 }]);
  const page = await acted.open(acted.seed.people.ann, `${experimentsPath(acted, project, "after")}?c=before`);
  await expectColumn(compared(page), "Input", [question]);
  const differences = async (within: Locator): Promise<readonly (readonly string[])[]> => [
    await within.getByRole("deletion").allInnerTexts(),
    await within.getByRole("insertion").allInnerTexts(),
  ];
  await expect.poll(() => differences(compared(page))).toEqual([["quick"], ["slow"]]);
  await compared(page).getByRole("gridcell", { name: question }).click();
  const opened = page.getByRole("complementary", { name: "Open pair" }).getByRole("region", { name: "after" });
  await expect.poll(() => differences(opened)).toEqual([["quick"], ["slow"]]);
  await page.getByRole("button", { name: "Diff", exact: true }).click();
  await expect.poll(() => differences(compared(page))).toEqual([[], []]);

  const { demo } = acted.seed;
  await page.goto(`${experimentsPath(acted, demo, "X2")}?c=X1`);
  await page.getByRole("button", { name: "Group", exact: true }).click();
  const path = page.getByRole("combobox", { name: "Path to group by" });
  await path.fill("level");
  await arrowTo(page, path, /^metadata\.level/);
  await path.press("Enter");
  const groups = page.getByRole("region", { name: "Groups by metadata.level" });
  await groups.waitFor();
  const lines = async (): Promise<readonly string[]> =>
    (await groups.getByRole("row").allInnerTexts()).slice(1).map((line) => line.replaceAll(/\s+/g, " ").trim());
  await expect.poll(lines).toEqual(["easy 2 / 2 0.50 → 1.00 ↑ +0.50", "hard 1 / 1 1.00 → 0.00 ↓ -1.00"]);
  await groups.getByRole("button", { name: "hard" }).click();
  await expectColumn(compared(page), "Input", ["3+3"]);
  expect(new URL(page.url()).searchParams.get("q")).toBe("metadata.level = 'hard'");
});
