// What is stored and used, budgets, rules of retention, and what the home says of changes since the last visit.
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { DEMO_RANGE } from "../support/demo";
import { flow, PATIENCE, type Flow } from "../support/flow";
import { at, listAt, numberAt, textAt } from "../support/json";
import { ownProject } from "../support/logs";
import { startProvider, type Provider } from "../support/provider";

const DAY_MS = 86_400_000;

/** The range of demo as a condition. */
const DEMO_DAYS = DEMO_RANGE.replace(/^(.*)\.\.(.*)$/, "created >= '$1' and created < '$2'");

const ago = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString();

const settings = (acted: Flow, section: string): string => acted.path("settings", section);

const number = (value: number): string => value.toLocaleString("en-US");

const rowOf = (page: Page, table: string, name: string): Locator =>
  page.getByRole("table", { name: table }).getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });

flow("usage shows what the API counts, and what models took", async (acted) => {
  const { demo, people } = acted.seed;
  const page = await acted.open(people.ann, `${settings(acted, "usage")}?t=${encodeURIComponent(DEMO_RANGE)}&y=tokens`);
  const usage = await acted.api.call("GET", "/console/usage");
  const project = listAt(usage, "projects").find((one) => at(one, "id") === demo.id);
  const cells = rowOf(page, "Stored by project", demo.name).getByRole("cell");
  await expect.poll(() => cells.first().textContent(), { timeout: PATIENCE }).toBe(number(numberAt(project, "rows")));
  const projects = listAt(await acted.api.call("GET", "/v1/project?limit=1000"), "objects").map((one) => `'${textAt(one, "id")}'`);
  const models = await acted.api.query(
    [
      "dimensions: metadata.model as model",
      "measures: count(1) as n, sum(metrics.prompt_tokens) as prompt",
      `from: project_logs(${projects.join(", ")})`,
      `filter: span_attributes.type = 'llm' and metadata.model is not null and ${DEMO_DAYS}`,
    ].join(" | "),
  );
  expect(models.length).toBeGreaterThan(0);
  for (const model of models) {
    const row = rowOf(page, "Spending by model", textAt(model, "model")).getByRole("cell");
    await expect.poll(() => row.allTextContents(), { timeout: PATIENCE }).toEqual(
      expect.arrayContaining([number(numberAt(model, "n")), number(numberAt(model, "prompt"))]),
    );
  }
  await page.getByRole("button", { name: "Project", exact: true }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get("sort")).toBe("name");
});

/** Fills in the number of a rule's preview, once it is counted. */
async function confirm(page: Page, count: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  await dialog.getByText(`${count} rows would be deleted`).waitFor();
  await dialog.getByRole("textbox", { name: `Type ${count} to confirm` }).fill(count);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "hidden" });
}

flow("a rule of retention counts what would go, has the number typed, and is stored as the API says", async (acted) => {
  const project = await ownProject(acted, "aging");
  await acted.api.insert("project_logs", project.id, [
    ...[60, 50, 40].map((days) => ({ id: `old-${days}`, created: ago(days), input: days })),
    ...[20, 1].map((days) => ({ id: `young-${days}`, created: ago(days), input: days })),
  ]);
  const exact = async (days: number): Promise<string> => {
    const query = `measures: count(1) as n | from: project_logs('${project.id}') | filter: created < '${ago(days)}'`;
    return String(numberAt((await acted.api.query(query))[0], "n"));
  };
  const rules = async (): Promise<readonly unknown[]> =>
    listAt(await acted.api.call("GET", `/v1/project_automation?project_id=${project.id}`), "objects").map((one) => at(one, "config"));
  const page = await acted.open(acted.seed.people.ann, settings(acted, "retention"));
  await page.getByRole("button", { name: "New rule" }).first().click();
  const dialog = page.getByRole("dialog", { name: "New rule of retention" });
  await dialog.getByRole("combobox", { name: "Project" }).selectOption(project.name);
  await dialog.getByRole("textbox", { name: "Kept for days" }).fill("30");
  await dialog.getByText("3 rows would be deleted").waitFor();
  expect(await exact(30)).toBe("3");
  await dialog.getByRole("textbox", { name: "Type 3 to confirm" }).fill("4");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByRole("alert").getByText("Type 3 to confirm that these rows are to go.").waitFor();
  expect(await rules()).toEqual([]);
  await confirm(page, "3");
  const rule = page.getByRole("listitem", { name: `Delete logs of ${project.name} older than 30 days` });
  await rule.waitFor();
  expect(await rules()).toEqual([{ event_type: "retention", object_type: "project_logs", retention_days: 30 }]);

  await rule.getByRole("button", { name: /^Actions of the rule/ }).click();
  await page.getByRole("menuitem", { name: "Edit" }).click();
  await page.getByRole("dialog").getByRole("textbox", { name: "Kept for days" }).fill("45");
  await confirm(page, await exact(45));
  await page.getByRole("listitem", { name: `Delete logs of ${project.name} older than 45 days` }).waitFor();
  expect(await rules()).toEqual([{ event_type: "retention", object_type: "project_logs", retention_days: 45 }]);

  await page.getByRole("button", { name: /^Actions of the rule .*older than 45 days/ }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect.poll(rules).toEqual([]);
});

flow("a rule that keeps rows for less than an hour is asked about once more, and is stored as confirmed", async (acted) => {
  const project = await ownProject(acted, "short");
  const rules = async (): Promise<readonly unknown[]> =>
    listAt(await acted.api.call("GET", `/v1/project_automation?project_id=${project.id}`), "objects").map((one) => at(one, "config"));
  const stored = { event_type: "retention", object_type: "experiment" };
  const page = await acted.open(acted.seed.people.ann, settings(acted, "retention"));
  const asked = page.getByRole("dialog", { name: "Keep rows for less than an hour?" });
  await page.getByRole("button", { name: "New rule" }).first().click();
  const dialog = page.getByRole("dialog", { name: "New rule of retention" });
  await dialog.getByRole("combobox", { name: "Project" }).selectOption(project.name);
  await dialog.getByRole("combobox", { name: "What is deleted" }).selectOption("Experiments");
  await dialog.getByRole("textbox", { name: "Kept for days" }).fill("0");
  await dialog.getByRole("status").getByText("No row is that old now.").waitFor();
  await dialog.getByRole("button", { name: "Create" }).click();
  await asked.getByText("Rows are deleted soon after they are written").waitFor();
  await asked.getByRole("button", { name: "Cancel" }).click();
  expect(await dialog.getByRole("textbox", { name: "Kept for days" }).inputValue()).toBe("0");
  expect(await rules()).toEqual([]);
  await dialog.getByRole("button", { name: "Create" }).click();
  await asked.getByRole("button", { name: "Create" }).click();
  await page.getByRole("listitem", { name: `Delete rows of experiments of ${project.name} older than 0 days` }).waitFor();
  await asked.waitFor({ state: "hidden" });
  expect(await rules()).toEqual([{ ...stored, retention_days: 0, confirm: true }]);

  await page.getByRole("button", { name: `Actions of the rule “Delete rows of experiments of ${project.name} older than 0 days”` }).click();
  await page.getByRole("menuitem", { name: "Edit" }).click();
  const edit = page.getByRole("dialog", { name: "Edit the rule" });
  await edit.getByRole("textbox", { name: "Kept for days" }).fill("0.04");
  await edit.getByRole("status").getByText("No row is that old now.").waitFor();
  await page.keyboard.press("Enter");
  await asked.getByRole("button", { name: "Save" }).click();
  await expect.poll(rules).toEqual([{ ...stored, retention_days: 0.04, confirm: true }]);

  await page.getByRole("button", { name: /^Actions of the rule .*older than 0.04 days/ }).click();
  await page.getByRole("menuitem", { name: "Edit" }).click();
  await edit.getByRole("textbox", { name: "Kept for days" }).fill("7");
  await edit.getByRole("status").getByText("No row is that old now.").waitFor();
  await page.keyboard.press("Enter");
  await expect.poll(rules).toEqual([{ ...stored, retention_days: 7 }]);
  expect(await asked.count()).toBe(0);
});

flow("a budget is made, shown with its usage, changed and deleted", async (acted) => {
  const model = `flow-model${acted.seed.suffix}`;
  const budgets = async (): Promise<readonly unknown[]> =>
    listAt(await acted.api.call("GET", "/v1/gateway_budget?limit=1000"), "objects").filter((one) => at(one, "scope", "id") === model);
  const page = await acted.open(acted.seed.people.ann, settings(acted, "budgets"));
  await page.getByRole("button", { name: "New budget" }).first().click();
  const dialog = page.getByRole("dialog", { name: "New budget" });
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByText("Enter at least one limit.").waitFor();
  await dialog.getByRole("combobox", { name: "For" }).selectOption("A model");
  await dialog.getByRole("combobox", { name: "Name of the model" }).fill(model);
  await dialog.getByRole("combobox", { name: "Counted" }).selectOption("each day");
  await dialog.getByRole("textbox", { name: "Cost in dollars" }).fill("12.50");
  await dialog.getByRole("textbox", { name: "Calls", exact: true }).fill("100");
  await dialog.getByRole("button", { name: "Create" }).click();
  const shown = page.getByRole("listitem", { name: `The model ${model}` });
  await shown.getByText("$0 of $12.5 · $12.5 left").waitFor();
  await shown.getByText("0 of 100 · 100 left").waitFor();
  const [made] = await budgets();
  expect(made).toMatchObject({ scope: { type: "model" }, window: "day", limit_usd: 12.5, limit_requests: 100, limit_tokens: null, action: "reject" });

  const act = async (action: string): Promise<void> => {
    await shown.getByRole("button", { name: `Actions of the budget of The model ${model}` }).click();
    await page.getByRole("menuitem", { name: action }).click();
  };
  await act("Edit");
  const edited = page.getByRole("dialog", { name: "Edit the budget" });
  await edited.getByRole("textbox", { name: "Cost in dollars" }).fill("");
  await edited.getByRole("combobox", { name: "Beyond a limit" }).selectOption("Only report");
  await edited.getByRole("button", { name: "Save" }).click();
  await shown.getByText("Only reports").waitFor();
  expect((await budgets())[0]).toMatchObject({ limit_usd: null, limit_requests: 100, action: "alert" });

  await act("Delete");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await shown.waitFor({ state: "hidden" });
  expect(await budgets()).toEqual([]);
});

/** Makes the models of a scripted provider those of a project. */
async function offerModel(acted: Flow, projectId: string, provider: Provider, model: string): Promise<void> {
  await acted.api.call("POST", "/v1/env_var", {
    object_type: "project",
    object_id: projectId,
    name: "SCRIPTED",
    value: "sk-scripted",
    secret_type: "openai",
    metadata: { api_base: provider.url, customModels: { [model]: { format: "openai", flavor: "chat" } }, excludeDefaultModels: true },
  });
}

flow("a budget that calls of models have used up is marked, and says what is left", async (acted) => {
  const project = await ownProject(acted, "spending");
  const provider = await startProvider();
  try {
    const model = "scripted";
    await offerModel(acted, project.id, provider, model);
    const scope = { type: "project", id: project.id };
    await acted.api.call("POST", "/v1/gateway_budget", { scope, window: "total", limit_requests: 1, action: "reject" });
    const page = await acted.open(acted.seed.people.ann, settings(acted, "budgets"));
    const shown = page.getByRole("listitem", { name: `The project ${project.name}` });
    await shown.getByText("0 of 1 · 1 left").waitFor();
    const ask = async (): Promise<number> => {
      const response = await fetch(`${acted.stage.base}/v1/proxy/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${acted.api.key}`, "content-type": "application/json", "x-bt-project-id": project.id },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] }),
      });
      await response.text();
      return response.status;
    };
    expect([await ask(), await ask()]).toEqual([200, 429]);
    await shown.getByText("1 of 1 · 0 left").waitFor();
    await shown.getByText("Exceeded").waitFor();
    expect(provider.calls.length).toBe(1);
  } finally {
    provider.close();
  }
});

flow("home pins projects, and says what has changed since the last visit", async (acted) => {
  const { ann } = acted.seed.people;
  const organization = textAt(await acted.api.call("GET", "/v1/organization"), "objects", 0, "id");
  const context = await acted.enter(ann);
  const page = await context.newPage();
  await page.goto(acted.path());
  const news = page.getByRole("complementary", { name: "For you" });
  await news.getByText(/^This is your first visit with this browser/).waitFor();
  const project = await ownProject(acted, "fresh");
  const span = { id: "fresh-1", input: 1, error: `NewError: no answer within ${Date.now()} ms`, metadata: { "~__bt_assignments": [ann.id] } };
  await acted.api.insert("project_logs", project.id, [span]);
  await page.evaluate(([name, text]) => localStorage.setItem(name ?? "", text ?? ""), [
    `assay-console.visit.${organization}`,
    `${Date.now() - 3_600_000} -`,
  ]);
  await page.reload();
  const error = news.getByRole("link", { name: new RegExp(`NewError: no answer within .*${project.name}`) });
  await error.waitFor();
  const waiting = news.getByRole("region", { name: "To review" });
  const more = waiting.getByRole("button", { name: /^Show \d+ more$/ });
  await waiting.getByRole("link").first().waitFor();
  if (await more.isVisible()) await more.click();
  await waiting.getByRole("link", { name: new RegExp(`^${project.name} 1 row$`) }).waitFor();
  await error.click();
  await page.getByRole("grid", { name: /spans/i }).getByRole("row").nth(1).waitFor();
  expect(new URL(page.url()).pathname).toContain(encodeURIComponent(project.name));

  await page.goBack();
  await page.getByRole("button", { name: `Actions of ${acted.seed.evil.name}`, exact: true }).click();
  await page.getByRole("menuitem", { name: "Pin to the top" }).click();
  const first = page.getByRole("grid", { name: "Projects" }).getByRole("row").nth(1);
  await first.getByRole("link", { name: acted.seed.evil.name, exact: true }).waitFor();
  await page.reload();
  await first.getByRole("link", { name: acted.seed.evil.name, exact: true }).waitFor();
});
