// Flow 22: conversations of each API, with their roles, the results of their tools, and their pictures.
import { randomBytes } from "node:crypto";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { PICTURE_WIDTH, RECORDED, SAID, TELEMETRY_NAME, telemetry, TOOL } from "../support/conversations";
import { flow, PATIENCE } from "../support/flow";
import { at, textAt } from "../support/json";
import { ownProject, smallTrace } from "../support/logs";
import { expectLines, tracePath, tree } from "../support/trace";

/** The role that each message of a section names. */
async function roles(page: Page, section: string): Promise<readonly string[]> {
  const items = page.getByRole("region", { name: section, exact: true }).getByRole("listitem");
  const texts = await items.allTextContents();
  return texts.map((text) => /^(?:system|user|assistant|tool)/.exec(text)?.[0] ?? text.slice(0, 40));
}

/** Checks that the detail of the selected span shows the conversation, in one form whatever API it came from. */
async function expectConversation(page: Page, form: string): Promise<void> {
  const input = page.getByRole("region", { name: "Input", exact: true });
  const output = page.getByRole("region", { name: "Output", exact: true });
  const call = input.getByRole("group", { name: `Call of ${TOOL}` });
  await call.waitFor();
  expect(await roles(page, "Input"), form).toEqual(["system", "user", "assistant"]);
  expect(await roles(page, "Output"), form).toEqual(["assistant"]);
  await input.getByText(SAID.system).waitFor();
  await input.getByText(SAID.question).waitFor();
  await output.getByText(SAID.answer).waitFor();
  expect(await input.getByText("Returned").count(), form).toBe(1);
  const joined = (await call.textContent()) ?? "";
  for (const text of [TOOL, SAID.city, "Returned", SAID.sky]) expect(joined, form).toContain(text);
  expect(joined.indexOf(SAID.city), form).toBeLessThan(joined.indexOf(SAID.sky));

  const picture = input.getByRole("img", { name: "Image" });
  const widthOf = (): Promise<number> => picture.evaluate((element: HTMLImageElement) => element.naturalWidth);
  await expect.poll(widthOf, { timeout: PATIENCE, message: form }).toBe(PICTURE_WIDTH);
  expect(await picture.getAttribute("src"), form).toMatch(/^blob:/);
  await input.getByRole("button", { name: "Show Image in full size" }).click();
  const dialog = page.getByRole("dialog", { name: "Image" });
  await dialog.getByRole("img", { name: "Image in full size" }).waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
}

flow("22 conversations of five APIs show roles, tools with their results, and pictures", async (acted) => {
  const project = await ownProject(acted, "messages");
  const spans = RECORDED.map(({ name, input, output }, index) =>
    smallTrace({ id: `talk-${index}`, ago: 60_000 }, { input, output, span_attributes: { name, type: "llm" } }),
  );
  await acted.api.insert("project_logs", project.id, spans);
  const context = await acted.enter(acted.seed.people.ann);
  const page = await context.newPage();
  for (const [index, { name, output }] of RECORDED.entries()) {
    await page.goto(tracePath(acted, project, `talk-${index}`));
    await expectLines(page, 1);
    await tree(page).getByRole("row", { name: new RegExp(name.replaceAll(".", "\\.")) }).waitFor();
    await expectConversation(page, name);
    const [row] = await acted.api.query(`SELECT output FROM project_logs('${project.id}') WHERE id = 'talk-${index}'`);
    expect(at(row, "output"), name).toEqual(output);
  }
});

flow("22 a conversation that comes by OTLP reads the same", async (acted) => {
  const project = await ownProject(acted, "telemetry");
  const traceId = randomBytes(16).toString("hex");
  const sent = await fetch(`${acted.stage.base}/otel/v1/traces`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${acted.api.key}`,
      "content-type": "application/json",
      "x-bt-parent": `project_id:${project.id}`,
    },
    body: JSON.stringify(telemetry(traceId, Date.now() - 5000)),
  });
  expect(sent.status, await sent.text()).toBe(200);
  const [row] = await acted.api.query(`SELECT root_span_id FROM project_logs('${project.id}')`);
  const page = await acted.open(acted.seed.people.ann, tracePath(acted, project, textAt(row, "root_span_id")));
  await expectLines(page, 1);
  await expectConversation(page, TELEMETRY_NAME);
});
