// The playground: four prompts on three models over fifty rows, and a span that is asked again.
import type { Locator, Page } from "playwright-core";
import { expect, vi } from "vitest";
import type { Project } from "../seed";
import { flow, PATIENCE, type Flow } from "../support/flow";
import { at, listAt, numberAt, textAt } from "../support/json";
import { ownProject } from "../support/logs";
import { answerOf, FAILING, JUDGE, SLOW, startProvider, type Provider } from "../support/provider";
import { playgroundsPath } from "../support/screens";

const ROWS = 50;
const MODELS = ["quick", SLOW, FAILING];

/** A failing model makes answers 400, which the browser tells. */
const REFUSED = /console: Failed to load resource: .* 400 .*\/function\/invoke$/;

/** What a run may take on a busy machine. Nothing is asserted of it: 600 cells make 1,400 calls. */
const RUN_MS = 600_000;

vi.setConfig({ testTimeout: 2 * RUN_MS });

/** Makes the provider's models those of a project. */
async function offerModels(acted: Flow, project: Project, provider: Provider): Promise<void> {
  const spec = { format: "openai", flavor: "chat", input_cost_per_mil_tokens: 1, output_cost_per_mil_tokens: 2 };
  const customModels = Object.fromEntries([...MODELS, JUDGE].map((model) => [model, spec]));
  await acted.api.call("POST", "/v1/env_var", {
    object_type: "project",
    object_id: project.id,
    name: "SCRIPTED",
    value: "sk-scripted",
    secret_type: "openai",
    metadata: { api_base: provider.url, customModels, excludeDefaultModels: true },
  });
}

const promptOf = (text: string) => ({ prompt: { type: "chat", messages: [{ role: "user", content: text }] } });

async function plant(acted: Flow, project: Project): Promise<void> {
  const { api } = acted;
  const made = (name: string, more: Readonly<Record<string, unknown>>): Promise<unknown> =>
    api.call("POST", "/v1/function", { project_id: project.id, name, slug: name.toLowerCase(), function_data: { type: "prompt" }, ...more });
  for (const name of ["Short", "Long", "Kind"]) await made(name, { prompt_data: promptOf(`${name}: {{q}}`) });
  const parser = { type: "llm_classifier", use_cot: true, choice_scores: { Good: 1, Bad: 0 } };
  const data = { ...promptOf("Is {{output}} good?"), options: { model: JUDGE }, parser };
  await made("Quality", { function_type: "scorer", prompt_data: data });
  const dataset = textAt(await api.call("POST", "/v1/dataset", { project_id: project.id, name: "Questions" }), "id");
  const events = Array.from({ length: ROWS }, (_, index) => ({ id: `q${index}`, input: { q: `number ${index}` }, expected: answerOf("quick", `Short: number ${index}`) }));
  await api.insert("dataset", dataset, events);
}

const cells = (page: Page): Locator => page.getByRole("grid", { name: "Cells" });

const progress = (page: Page): Locator => page.getByRole("group", { name: "Progress" });

const button = (page: Page, name: string | RegExp): Locator => page.getByRole("button", { name, exact: typeof name === "string" });

/** Opens a dialog by a button, chooses options in it, and closes it. */
async function choose(page: Page, opener: string | RegExp, options: readonly string[], action: string): Promise<void> {
  await button(page, opener).click();
  const dialog = page.getByRole("dialog");
  for (const option of options) await dialog.getByRole("option", { name: new RegExp(`^${option}(?![-\\w])`) }).click();
  await dialog.getByRole("button", { name: action, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}

/** Makes a playground of four prompts on three models over the dataset, with two scorers. */
async function makePlayground(acted: Flow, project: Project): Promise<Page> {
  const page = await acted.open(acted.seed.people.ann, playgroundsPath(acted, project));
  await page.getByText("This project has no playground yet.").waitFor();
  await page.keyboard.press("n");
  await page.getByRole("dialog").getByRole("textbox", { name: "Name" }).fill("Support");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Support" }).waitFor();
  await choose(page, "Prompts", ["Short", "Long", "Kind"], "Add");
  await choose(page, "Models", MODELS, "Add");
  await button(page, /^Rows:/).click();
  await page.getByRole("dialog").getByRole("combobox", { name: "Rows" }).selectOption({ label: "Questions" });
  await page.getByRole("dialog").getByRole("button", { name: "Use" }).click();
  await button(page, "Scorers").click();
  for (const name of [/^ExactMatch/, /^Quality/]) await page.getByRole("dialog").getByRole("checkbox", { name }).check();
  await page.getByRole("dialog").getByRole("button", { name: "Use" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  return page;
}

/** The experiments of a project, with how many spans of each type they have. */
async function savedSpans(acted: Flow, project: Project) {
  const saved = listAt(await acted.api.call("GET", `/v1/experiment?project_id=${project.id}`), "objects");
  const names = new Map(saved.map((one) => [textAt(one, "id"), textAt(one, "name")]));
  const from = `experiment(${[...names.keys()].map((id) => `'${id}'`).join(", ")})`;
  const counted = await acted.api.query(
    `dimensions: experiment_id as e, span_attributes.type as t | measures: count(1) as n, count(error) as errors, ` +
      `count(scores.ExactMatch) as exact, count(scores.Quality) as quality | from: ${from} | limit: 1000`,
  );
  const of = (name: string, type: string) =>
    counted.find((row) => names.get(textAt(row, "e")) === name && at(row, "t") === type) ?? { n: 0 };
  return { names: [...names.values()], of };
}

flow(
  "4 prompts on 3 models over 50 rows stream at once, are stopped and go on; every cell's spans and scores are saved and compared",
  async (acted) => {
    const provider = await startProvider();
    try {
      const project = await ownProject(acted, "playground");
      await offerModels(acted, project, provider);
      await plant(acted, project);
      const page = await makePlayground(acted, project);
      await progress(page).getByText("0 of 600 cells").waitFor();
      await page.getByText("Saved", { exact: true }).waitFor();

      await page.keyboard.press("Control+Enter");
      await expect.poll(() => provider.ended.length, { timeout: RUN_MS }).toBeGreaterThan(30);
      await button(page, "Stop").click();
      await button(page, "Run all").waitFor();
      const called = provider.calls.length;
      expect(called).toBeLessThan(600);
      await cells(page).getByRole("gridcell", { name: /out of order/ }).first().waitFor();

      await button(page, /^Run the other \d+$/).click();
      await button(page, "Stop").waitFor();
      await button(page, "Run all").waitFor({ timeout: RUN_MS });
      await progress(page).getByText("400 of 600 cells").waitFor();
      await progress(page).getByText("200 failed").waitFor();
      expect(provider.most()).toBeLessThanOrEqual(8);
      const [came, ended] = [provider.calls, provider.ended].map((all) => all.filter((one) => !one.startsWith(JUDGE)));
      expect(came).not.toEqual(ended);
      expect(new Set(came).size).toBe(600);

      const heads = cells(page).getByRole("columnheader");
      expect(await heads.count()).toBe(13);
      await heads.filter({ hasText: "Short" }).filter({ hasText: "quick" }).getByText("ExactMatch 1.00").waitFor();
      await cells(page).getByRole("gridcell", { name: answerOf("quick", "Short: number 49") }).click();
      const open = page.getByRole("complementary", { name: "Open cell" });
      await open.getByRole("region", { name: "Scores" }).getByText("Good: As told.").waitFor();
      await expect.poll(() => open.getByRole("region", { name: "What it took" }).innerText()).toMatch(/\d+ tokens/);
      await page.keyboard.press("Escape");
      await open.waitFor({ state: "detached" });

      await page.keyboard.press("e");
      await page.getByRole("dialog").getByText("600 cells are saved with their spans and scores.").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
      const compared = page.getByRole("grid", { name: "Compared rows" });
      await compared.getByRole("row").nth(1).waitFor({ timeout: RUN_MS });
      expect(new URL(page.url()).searchParams.getAll("c")).toHaveLength(7);

      const { names, of } = await savedSpans(acted, project);
      expect(names).toHaveLength(12);
      for (const name of names) {
        const isFailing = name.endsWith(FAILING);
        expect(of(name, "eval"), name).toMatchObject({ n: ROWS, errors: isFailing ? ROWS : 0, exact: isFailing ? 0 : ROWS, quality: isFailing ? 0 : ROWS });
        expect(numberAt(of(name, "llm"), "n"), name).toBeGreaterThanOrEqual(isFailing ? 0 : 2 * ROWS);
        expect(numberAt(of(name, "score"), "n"), name).toBe(isFailing ? 0 : 2 * ROWS);
      }

      await page.goBack();
      await progress(page).getByText("400 of 600 cells").waitFor();
      await progress(page).getByText("200 failed").waitFor();
    } finally {
      provider.close();
    }
  },
  [REFUSED],
);

flow("a model's span opens in a playground, runs there, and becomes a prompt", async (acted) => {
  const provider = await startProvider();
  try {
    const project = await ownProject(acted, "replay");
    await offerModels(acted, project, provider);
    const ids = (id: string) => ({ id, span_id: id, root_span_id: "root" });
    await acted.api.insert("project_logs", project.id, [
      { ...ids("root"), span_attributes: { name: "chat", type: "task" } },
      {
        ...ids("call"),
        span_parents: ["root"],
        span_attributes: { name: "openai.chat", type: "llm" },
        input: [{ role: "system", content: "Be short." }, { role: "user", content: "Hello" }],
        output: [{ message: { role: "assistant", content: "Hi" } }],
        metadata: { model: "quick", temperature: 0.3 },
      },
    ]);
    const page = await acted.open(acted.seed.people.ann, `${acted.path("p", project.name, "trace", "root")}?s=call`);
    await button(page, "Actions").click();
    await page.getByRole("menuitem", { name: "Open in playground" }).click();
    const panel = page.getByRole("complementary", { name: "Column openai.chat · quick" });
    const asked = panel.getByRole("textbox", { name: "Text of message 2" });
    await asked.fill("Hello again");
    expect(await panel.getByRole("textbox", { name: "Temperature" }).inputValue()).toBe("0.3");
    await page.keyboard.press("Control+Enter");
    await cells(page).getByRole("gridcell", { name: answerOf("quick", "Hello again") }).waitFor({ timeout: PATIENCE });

    await panel.getByRole("button", { name: "Save as a version" }).click();
    const dialog = page.getByRole("dialog", { name: "Save as a version of a prompt" });
    await dialog.getByRole("textbox", { name: "Name" }).fill("Greeting");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const saved = await acted.api.call("GET", `/v1/prompt?project_id=${project.id}&slug=greeting`);
    const data = at(listAt(saved, "objects")[0], "prompt_data");
    expect(at(data, "options")).toMatchObject({ model: "quick", params: { temperature: 0.3 } });
    expect(at(data, "prompt", "messages", 1, "content")).toBe("Hello again");
    const session = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    const kept = () => acted.api.query(`select: id | from: playground_logs('${session}') | filter: is_root`);
    await expect.poll(async () => (await kept()).length, { timeout: PATIENCE }).toBe(1);
    await page.reload();
    await cells(page).getByRole("gridcell", { name: answerOf("quick", "Hello again") }).waitFor();
  } finally {
    provider.close();
  }
});
