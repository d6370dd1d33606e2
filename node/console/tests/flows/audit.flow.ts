// Flow 39 and its neighbours: the audit log and its chain, keys, and secrets of providers.
import type { Locator, Page, Request } from "playwright-core";
import { expect } from "vitest";
import { Api } from "../support/api";
import { lastSequence } from "../support/audit";
import { flow, type Flow } from "../support/flow";
import { at, listAt, textAt } from "../support/json";
import { FAILING, startProvider } from "../support/provider";

const settings = (acted: Flow, section: string, query = ""): string => `${acted.path("settings", section)}${query}`;

const log = (page: Page): Locator => page.getByRole("grid", { name: "Audit log" });

const chain = (page: Page): Locator => page.getByRole("region", { name: "Chain" });

/** A name that no earlier run used. */
const unused = (name: string): string => `${name}-${Date.now().toString(36)}`;

/** The number of an entry about an object, by what was done to it. */
async function entryOf({ api }: Flow, id: string, action: string): Promise<number> {
  const organization = textAt(await api.call("GET", "/v1/organization"), "objects", 0, "id");
  const where = `object_id = '${id}' AND action = '${action}'`;
  const [row] = await api.query(`SELECT sequence FROM org_audit_logs('${organization}') WHERE ${where}`);
  return Number(at(row, "sequence"));
}

/** A group that gets a grant and another name, and loses the grant again. Nobody is in it. */
async function changedGroup({ api, seed }: Flow) {
  const [before, after] = [unused("before"), unused("after")];
  const group = textAt(await api.call("POST", "/v1/group", { name: before }), "id");
  const grant = { object_type: "project", object_id: seed.wide.id, group_id: group, permission: "read" };
  const acl = textAt(await api.call("POST", "/v1/acl", grant), "id");
  await api.call("PATCH", `/v1/group/${group}`, { name: after });
  await api.call("DELETE", `/v1/acl/${acl}`);
  return { group, acl, before, after };
}

flow("39 the audit log shows a change with before and after, and its chain verifies", async (acted) => {
  const { group, acl, before, after } = await changedGroup(acted);
  const page = await acted.open(acted.seed.people.ann, settings(acted, "audit", `?q=${group}`));
  await log(page).getByRole("row", { name: new RegExp(`Changed.*${after}`) }).waitFor();
  expect(await log(page).getAttribute("aria-rowcount")).toBe("5");
  await log(page).getByRole("row", { name: /Changed group/ }).click();
  const changed = page.getByRole("complementary", { name: `Entry #${await entryOf(acted, group, "update")}` });
  const difference = changed.getByRole("region", { name: "Before and after" });
  await difference.getByText(before.split("-")[0] ?? "", { exact: false }).first().waitFor();
  await difference.getByRole("button", { name: "Paths" }).click();
  expect(await difference.getByRole("deletion").allInnerTexts()).toContain(`"${before}"`);
  expect(await difference.getByRole("insertion").allInnerTexts()).toContain(`"${after}"`);
  await log(page).getByRole("row", { name: /Deleted grant/ }).click();
  const gone = page.getByRole("complementary", { name: `Entry #${await entryOf(acted, acl, "delete")}` });
  await gone.getByRole("region", { name: "Before" }).getByText('"read"').waitFor();
  await gone.getByText(`read on project ${acted.seed.wide.name} for group ${after}`).waitFor();
  await chain(page).getByText(/^Chain verified to #[\d,]+$/).waitFor();
  const verified = (await chain(page).getByText(/^Chain verified to/).innerText()).replace(/\D/g, "");
  expect(Number(verified)).toBeGreaterThanOrEqual(await entryOf(acted, acl, "delete"));
  expect(Number(verified)).toBeLessThanOrEqual(await lastSequence(acted.api));
  await page.keyboard.press("Escape");
  await page.getByRole("complementary").waitFor({ state: "detached" });
});

/** Sends a request of a page on, past the proxy of its browser. */
async function passedOn(request: Request) {
  const { host: _1, "content-length": _2, ...headers } = await request.allHeaders();
  const body = request.postData() ?? "";
  const answer = await fetch(request.url(), { method: "POST", headers, body });
  return { isChain: body.includes('"dir":"asc"'), status: answer.status, text: await answer.text() };
}

flow("39 a tampered log does not verify, and the page names the entry", async (acted) => {
  const { group, before } = await changedGroup(acted);
  const page = await (await acted.enter(acted.seed.people.ann)).newPage();
  await page.route("**/btql", async (route) => {
    const { isChain, status, text } = await passedOn(route.request());
    // the first place with the old name is the entry that made the group
    const body = isChain ? text.replace(`"name":"${before}"`, '"name":"another"') : text;
    await route.fulfill({ status, contentType: "application/json", body });
  });
  await page.goto(settings(acted, "audit"));
  const made = await entryOf(acted, group, "create");
  await chain(page).getByText(`Chain broken. Entry #${made} was changed after it was written.`).waitFor();
  await chain(page).getByRole("link", { name: `Show entry #${made}` }).click();
  const entry = page.getByRole("complementary", { name: `Entry #${made}` });
  await entry.getByRole("alert").filter({ hasText: `Entry #${made} was changed` }).waitFor();
  await page.unroute("**/btql");
  await chain(page).getByRole("button", { name: "Verify again" }).click();
  await chain(page).getByText(/^Chain verified to #[\d,]+$/).waitFor();
});

flow("a key is shown once, works, and is refused once it is deleted", async (acted) => {
  const name = unused("key");
  const page = await acted.open(acted.seed.people.ann, settings(acted, "keys"));
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill(name);
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "New API key" });
  await dialog.getByText("It is shown only now").waitFor();
  const key = await dialog.getByLabel("API key", { exact: true }).innerText();
  const own = new Api(acted.api.base, key);
  expect((await own.send("GET", "/v1/project")).status).toBe(200);
  await dialog.getByRole("button", { name: "Done" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(await page.content()).not.toContain(key);
  const rows = page.getByRole("grid", { name: "API keys" });
  await page.getByRole("searchbox", { name: "Filter by name" }).or(rows).first().waitFor();
  await rows.getByRole("row", { name: new RegExp(name) }).click();
  await page.keyboard.press(".");
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("dialog", { name: "Delete this key" }).getByRole("button", { name: "Delete" }).click();
  await rows.getByRole("row", { name: new RegExp(name) }).waitFor({ state: "detached" });
  expect((await own.send("GET", "/v1/project")).status).toBe(401);
});

async function addSecret(page: Page, name: string, url: string, models: readonly string[]): Promise<void> {
  await page.getByRole("button", { name: "New secret" }).click();
  const dialog = page.getByRole("dialog", { name: "New AI secret" });
  await dialog.getByLabel("Provider", { exact: true }).selectOption("OpenAI-compatible server");
  await dialog.getByLabel("Name", { exact: true }).fill(name);
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByRole("alert").filter({ hasText: "Base URL is missing." }).waitFor();
  await dialog.getByLabel("Base URL").fill(url);
  await dialog.getByLabel("Secret", { exact: true }).fill("sk-flows-0123456789");
  await dialog.getByLabel("Models", { exact: true }).fill(models.join("\n"));
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.waitFor({ state: "detached" });
}

async function openAction(page: Page, name: string, action: string): Promise<void> {
  await page.getByRole("grid", { name: "AI secrets" }).getByRole("button", { name: `Actions of ${name}` }).click();
  await page.getByRole("menuitem", { name: action }).click();
}

flow(
  "a provider's secret is tried alone, kept where it goes, and dropped where it would go elsewhere",
  async (acted) => {
    const provider = await startProvider();
    const name = unused("provider");
    const models = [`${name}-good`, `${name}-${FAILING}`];
    try {
      const page = await acted.open(acted.seed.people.ann, settings(acted, "secrets"));
      await addSecret(page, name, provider.url, models);
      await openAction(page, name, "Test call");
      const test = page.getByRole("dialog", { name: "Test call" });
      await test.getByRole("button", { name: "Call" }).click();
      await test.getByRole("region", { name: "Answer" }).getByText(`${models[0]} says:`).waitFor();
      await test.getByRole("combobox", { name: "Model" }).fill(models[1] ?? "");
      await test.getByRole("button", { name: "Call" }).click();
      await test.getByRole("alert").filter({ hasText: `The model ${models[1]} is out of order` }).waitFor();
      expect(provider.calls.map((call) => call.split(":")[0])).toEqual(models);
      await test.getByRole("button", { name: "Close" }).last().click();
      await openAction(page, name, "Edit");
      const edit = page.getByRole("dialog", { name: "Edit this AI secret" });
      await edit.getByLabel("Base URL").fill("http://127.0.0.1:1/v1");
      await edit.getByRole("status").filter({ hasText: "The server drops the one it has" }).waitFor();
      await edit.getByRole("button", { name: "Save" }).click();
      await page.getByText(`The server dropped the secret of ${name}`).waitFor();
      const [kept] = listAt(await acted.api.call("GET", `/v1/ai_secret?ai_secret_name=${name}`), "objects");
      expect([at(kept, "preview_secret"), at(kept, "metadata", "models")]).toEqual([null, models]);
      await openAction(page, name, "Delete");
      await page.getByRole("dialog", { name: "Delete this secret" }).getByRole("button", { name: "Delete" }).click();
      await page.getByRole("row", { name: new RegExp(name) }).waitFor({ state: "detached" });
      expect(listAt(await acted.api.call("GET", `/v1/ai_secret?ai_secret_name=${name}`), "objects")).toEqual([]);
    } finally {
      provider.close();
    }
  },
  [/console: Failed to load resource: .* 400 .*\/v1\/proxy\/chat\/completions$/],
);
