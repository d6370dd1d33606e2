// Flows 1, 2, 4 and 6: the ways in, and who sees what.
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { at, listAt, textAt } from "../support/json";
import { flow, type Flow } from "../support/flow";
import { expectFocusSeen } from "../support/focus";

const UNAUTHORIZED = /console: Failed to load resource: .* 401 .* at .*\/console\/session$/;

const keyField = (page: Page) => page.getByRole("textbox", { name: "API key or service token" });

const isFocused = (field: Locator): Promise<boolean> => field.evaluate((element) => element === document.activeElement);

/** Everything that the page could keep: what scripts can store and read, and its address. */
const kept = (page: Page): Promise<string> =>
  page.evaluate(async () => {
    const databases = await indexedDB.databases();
    const stored = [localStorage, sessionStorage].map((storage) => JSON.stringify({ ...storage }));
    const fields = [...document.querySelectorAll("input")].map((input) => input.value);
    return [...stored, JSON.stringify(databases), document.cookie, location.href, history.state, ...fields].join("\n");
  });

/** The row of a project on the home of an organization. */
const projectRow = (page: Page, name: string) =>
  page.getByRole("row").filter({ has: page.getByRole("gridcell", { name, exact: true }) });

/** A key of Ann that a flow may end. */
async function anotherKey({ api }: Flow, name: string): Promise<{ readonly id: string; readonly key: string }> {
  const made = await api.call("POST", "/v1/api_key", { name });
  return { id: textAt(made, "id"), key: textAt(made, "key") };
}

flow(
  "1 a key signs in, by keyboard alone, and nothing keeps it",
  async (acted) => {
    const { key } = await anotherKey(acted, "flow 1");
    const context = await acted.enter(null);
    const page = await context.newPage();
    const holders: string[] = [];
    let isSignedIn = false;
    page.on("request", (request) => {
      const sent = `${request.url()} ${request.postData() ?? ""} ${JSON.stringify(request.headers())}`;
      if (isSignedIn && sent.includes(key)) holders.push(request.url());
    });
    await page.goto("/app");
    await expect.poll(() => page.title()).toBe("Sign in · Assay");
    await expect.poll(() => isFocused(keyField(page))).toBe(true);
    await expectFocusSeen(page);
    await page.keyboard.type(key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Projects" }).waitFor();
    isSignedIn = true;
    expect(new URL(page.url()).pathname).toBe(acted.path());
    const [cookie, ...others] = await context.cookies();
    expect(others).toEqual([]);
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/", domain: "127.0.0.1" });
    expect(cookie?.name).toMatch(/^assay-[0-9a-f]{8}$/);
    await page.reload();
    await projectRow(page, acted.seed.demo.name).waitFor();
    expect(await kept(page)).not.toContain(key);
    expect(holders).toEqual([]);
    const session = await acted.api.send("GET", "/v1/organization");
    expect(session.status).toBe(200);
  },
  [UNAUTHORIZED],
);

flow(
  "2 a wrong key says so, and the focus stays",
  async (acted) => {
    const context = await acted.enter(null);
    const page = await context.newPage();
    await page.goto("/app/sign-in");
    const gone = await anotherKey(acted, "flow 2");
    await acted.api.call("DELETE", `/v1/api_key/${gone.id}`);
    const said: string[] = [];
    for (const key of ["sk-unknown-0123456789012345678901234567890123456789", gone.key]) {
      await keyField(page).fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
      const alert = page.getByRole("alert").filter({ hasText: /\S/ });
      await alert.waitFor();
      said.push(await alert.innerText());
      await expect.poll(() => isFocused(keyField(page))).toBe(true);
      await expect.poll(() => keyField(page).getAttribute("aria-invalid")).toBe("true");
    }
    expect(said).toEqual(["This key is not known, or it was revoked.", "This key is not known, or it was revoked."]);
    expect(await context.cookies()).toEqual([]);
    await keyField(page).fill("");
    await page.keyboard.press("Enter");
    await page.getByText("Enter a key first.").waitFor();
  },
  [UNAUTHORIZED],
);

flow(
  "4 a revoked key: the next request asks again, and what was typed is still there",
  async (acted) => {
    const { id, key } = await anotherKey(acted, "flow 4");
    const page = await acted.open({ ...acted.seed.people.ann, key }, acted.path());
    await projectRow(page, acted.seed.demo.name).waitFor();
    const filter = page.getByRole("searchbox", { name: "Filter the projects by name" });
    await filter.fill(acted.seed.demo.name);
    await page.getByRole("button", { name: "New project" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill(`flow-4${acted.seed.suffix}`);
    await acted.api.call("DELETE", `/v1/api_key/${id}`);
    // Another request of the page may have asked again already: then its dialog lies over the button.
    const create = page.getByRole("button", { name: "Create" });
    const isSent = await create.click({ timeout: 2_000 }).then(
      () => true,
      () => false,
    );
    const dialog = page.getByRole("dialog", { name: "Your session has ended" });
    await dialog.waitFor();
    expect(await filter.inputValue()).toBe(acted.seed.demo.name);
    await keyField(page).fill(acted.api.key);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    if (!isSent) await create.click();
    await page.getByRole("dialog", { name: "New project" }).waitFor({ state: "detached" });
    const found = await acted.api.call("GET", `/v1/project?project_name=flow-4${acted.seed.suffix}`);
    expect(listAt(found, "objects")).toHaveLength(1);
  },
  [/console: Failed to load resource: .* 401 /],
);

flow("6 Ben sees demo only, Cy nothing", async (acted) => {
  const { ben, cy } = acted.seed.people;
  const page = await acted.open(ben, acted.path());
  const grid = page.getByRole("grid", { name: "Projects" });
  await projectRow(page, acted.seed.demo.name).waitFor();
  expect(await grid.getAttribute("aria-rowcount")).toBe("2");
  const other = await acted.open(cy, acted.path());
  await other.getByText("This organization has no project yet").waitFor();
  expect(await other.getByRole("grid").count()).toBe(0);
  const names = async (person: typeof ben): Promise<unknown[]> =>
    listAt(await acted.apiOf(person).call("GET", "/v1/project"), "objects").map((project) => at(project, "name"));
  expect(await names(ben)).toEqual([acted.seed.demo.name]);
  expect(await names(cy)).toEqual([]);
});

flow(
  "signing out everywhere ends the sessions of all browsers, and back shows nothing",
  async (acted) => {
    const person = acted.seed.people.cy;
    const here = await acted.open(person, acted.path());
    await here.getByText("This organization has no project yet").waitFor();
    const there = await acted.open(person, acted.path());
    await there.getByText("This organization has no project yet").waitFor();
    await here.getByRole("button", { name: /^Signed in as/ }).click();
    await here.getByRole("menuitem", { name: "Sign out everywhere" }).click();
    await here.getByRole("heading", { level: 1, name: "Sign in to Assay" }).waitFor();
    expect(await here.context().cookies()).toEqual([]);
    await here.goBack();
    await here.getByRole("heading", { level: 1, name: "Sign in to Assay" }).waitFor();
    await there.reload();
    await there.getByRole("heading", { level: 1, name: "Sign in to Assay" }).waitFor();
    expect((await acted.apiOf(person).send("GET", "/v1/project")).status).toBe(200);
  },
  [/console: Failed to load resource: .* 401 /],
);
