// Flow 35: versions of a prompt, their differences, the environments that use them, and runs against a provider.
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import type { Project } from "../seed";
import { flow, PATIENCE, type Flow } from "../support/flow";
import { at, listAt, textAt } from "../support/json";
import { ownProject } from "../support/logs";
import { promptData, promptsPath } from "../support/prompts";
import { answerOf, FAILING, SLOW, startProvider } from "../support/provider";

const textOf = (page: Page, number: number): Locator => page.getByRole("textbox", { name: `Text of message ${number}` });

const versionsOf = (page: Page): Locator => page.getByRole("list", { name: "Versions" }).getByRole("listitem");

/** The answer of the API to a client that asks for a prompt by its slug. */
async function asked(acted: Flow, project: Project, more: string): Promise<unknown> {
  const query = new URLSearchParams({ project_id: project.id, slug: "greet" }).toString();
  const found = listAt(await acted.api.call("GET", `/v1/prompt?${query}${more}`), "objects");
  expect(found).toHaveLength(1);
  return found[0];
}

const contentOf = (prompt: unknown, message: number): unknown => at(prompt, "prompt_data", "prompt", "messages", message, "content");

/** Saves the edits as a version, by the keyboard, and waits until it is the newest. */
async function save(page: Page, note: string, count: number): Promise<void> {
  await page.keyboard.press("Control+s");
  const dialog = page.getByRole("dialog", { name: "Save a version" });
  await dialog.getByRole("textbox", { name: "Note" }).fill(note);
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await expect.poll(() => versionsOf(page).count(), { timeout: PATIENCE }).toBe(count);
  await versionsOf(page).first().getByText(note).waitFor();
}

flow("35 a prompt saved twice is diffed, and production stays on the old version", async (acted) => {
  const project = await ownProject(acted, "prompt");
  const page = await acted.open(acted.seed.people.ann, promptsPath(acted, project));
  await page.getByText("This project has no prompt yet.").waitFor();
  await page.keyboard.press("n");
  const dialog = page.getByRole("dialog", { name: "New prompt" });
  await dialog.getByRole("textbox", { name: "Name" }).fill("Greet");
  await dialog.getByRole("combobox", { name: "Model" }).fill("gpt-4o");
  await dialog.getByRole("textbox", { name: "Name" }).press("Enter");
  await page.getByRole("tab", { name: "Versions" }).click();

  await textOf(page, 2).fill("Greet {{name}}.");
  await save(page, "Names the guest", 2);
  const old = await asked(acted, project, "");
  expect(contentOf(old, 1)).toBe("Greet {{name}}.");
  expect(at(old, "prompt_data", "options", "model")).toBe("gpt-4o");

  await textOf(page, 2).fill("Greet {{name}} warmly.");
  await page.getByRole("button", { name: "Add a message" }).click();
  await page.keyboard.type("Hello!");
  await page.keyboard.press("Alt+ArrowUp");
  expect(await textOf(page, 2).inputValue()).toBe("Hello!");
  await page.keyboard.press("Alt+ArrowDown");
  await save(page, "Warmer", 3);
  const newest = await asked(acted, project, "");
  expect([contentOf(newest, 1), contentOf(newest, 2)]).toEqual(["Greet {{name}} warmly.", "Hello!"]);

  await versionsOf(page).first().getByRole("button").click();
  await page.getByRole("menuitem", { name: "Compare with the one before" }).click();
  const difference = page.getByRole("region", { name: "Differences" });
  await difference.getByText("Hello!").waitFor();
  expect(await difference.getByRole("insertion").allTextContents()).toContain(" warmly");
  expect(new URL(page.url()).searchParams.get("cmp")).toBe(textAt(old, "_xact_id"));
  await page.getByRole("button", { name: "Close the comparison" }).click();

  await acted.api.call("POST", "/environment", { name: "production", slug: "production" }).catch(() => undefined);
  await page.reload();
  await versionsOf(page).nth(1).getByRole("button").click();
  await page.getByRole("menuitem", { name: "Put production on it" }).click();
  const pin = page.getByRole("dialog", { name: /^Put production on the version of/ });
  await pin.getByText("production has no version yet.").waitFor();
  await pin.getByRole("region", { name: "Differences" }).waitFor();
  await pin.getByRole("button", { name: "Put production on it" }).click();
  await versionsOf(page).nth(1).getByText("production", { exact: true }).waitFor();
  const inProduction = await asked(acted, project, "&environment=production");
  expect(textAt(inProduction, "_xact_id")).toBe(textAt(old, "_xact_id"));
  expect(contentOf(inProduction, 1)).toBe("Greet {{name}}.");

  await page.getByRole("link", { name: "production", exact: true }).click();
  await expect.poll(() => textOf(page, 2).inputValue(), { timeout: PATIENCE }).toBe("Greet {{name}}.");
  expect(await textOf(page, 2).isEditable()).toBe(false);
  await page.getByRole("button", { name: "Restore as a new version" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
  await expect.poll(() => versionsOf(page).count(), { timeout: PATIENCE }).toBe(4);
  expect(contentOf(await asked(acted, project, ""), 1)).toBe("Greet {{name}}.");
});

flow("a version that somebody else saved meanwhile is shown before it is replaced", async (acted) => {
  const project = await ownProject(acted, "conflict");
  const made = await acted.api.call("POST", "/v1/prompt", { project_id: project.id, name: "Greet", slug: "greet", prompt_data: promptData("gpt-4o", "mine") });
  const page = await acted.open(acted.seed.people.ann, promptsPath(acted, project, "greet"));
  await textOf(page, 2).fill("my edit");
  await acted.api.call("PATCH", `/v1/prompt/${textAt(made, "id")}`, { prompt_data: promptData("gpt-4o", "their edit") });
  await page.keyboard.press("Control+s");
  await page.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
  const conflict = page.getByRole("dialog", { name: "Somebody else saved a version meanwhile" });
  await conflict.getByRole("region", { name: "Differences" }).getByText("their").waitFor();
  expect(contentOf(await asked(acted, project, ""), 1)).toBe("their edit");
  await conflict.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("link", { name: "Prompts", exact: true }).last().click();
  await page.getByRole("dialog", { name: "Leave with unsaved edits?" }).getByRole("button", { name: "Stay" }).click();
  await page.keyboard.press("Control+s");
  await page.getByRole("dialog").getByRole("button", { name: /^Save/ }).click();
  const again = page.getByRole("dialog").getByRole("button", { name: "Save over it" });
  const saved = page.getByText("The version is saved.").first();
  await again.or(saved).first().waitFor();
  if (await again.isVisible()) await again.click();
  await saved.waitFor();
  expect(contentOf(await asked(acted, project, ""), 1)).toBe("my edit");
});

flow("edits are run before they are saved; a run streams, stops, and says what failed", async (acted) => {
  const project = await ownProject(acted, "run");
  const provider = await startProvider();
  const models = ["quick", SLOW, FAILING].map((kind) => `flow-prompt-${kind}-${project.id.slice(0, 8)}`);
  const [quick = "", slow = "", failing = ""] = models;
  const secret = await acted.api.call("POST", "/v1/ai_secret", {
    name: `flows-prompts-${project.id}`,
    type: "openai",
    secret: "sk-scripted",
    metadata: { api_base: provider.url, models },
  });
  try {
    await acted.api.call("POST", "/v1/prompt", { project_id: project.id, name: "Greet", slug: "greet", prompt_data: promptData(quick, "Greet {{name}}.") });
    const page = await acted.open(acted.seed.people.ann, promptsPath(acted, project, "greet"));
    const answer = page.getByRole("region", { name: "Answer" });
    await page.getByRole("textbox", { name: "Input" }).fill('{"name": "Ada"}');
    await page.keyboard.press("Control+Enter");
    await answer.getByText(answerOf(quick, "Greet Ada.")).waitFor();
    await answer.getByText("Tokens").waitFor();
    await answer.getByRole("link", { name: "Open the trace" }).waitFor();
    await textOf(page, 2).fill("Praise {{name}}.");
    await page.getByRole("button", { name: "Run the edits" }).click();
    await answer.getByText(answerOf(quick, "Praise Ada.")).waitFor();
    expect(contentOf(await asked(acted, project, ""), 1)).toBe("Greet {{name}}.");

    await page.getByRole("combobox", { name: "Model" }).fill(slow);
    await page.keyboard.press("Escape");
    await textOf(page, 2).fill(`Say ${"much ".repeat(2000)}`);
    await page.getByRole("button", { name: "Run the edits" }).click();
    await answer.getByText(/Say much/).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await answer.getByText("Stopped.").waitFor();
    await expect.poll(provider.left, { timeout: PATIENCE }).toBe(1);

    await page.getByRole("combobox", { name: "Model" }).fill(failing);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Run the edits" }).click();
    await answer.getByRole("alert").getByText(/out of order/).waitFor();
    await page.getByRole("combobox", { name: "Model" }).fill("no-such-model");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Run the edits" }).click();
    await answer.getByRole("link", { name: /^Add a secret/ }).waitFor();
  } finally {
    provider.close();
    await acted.api.call("DELETE", `/v1/ai_secret/${textAt(secret, "id")}`);
  }
}, [/console: Failed to load resource: .* 400 .*\/function\/invoke$/]);
