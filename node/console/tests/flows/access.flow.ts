// Flow 38, and the other flows of people: why somebody may do something, groups in groups, roles, invitations, and the
// view of somebody else.
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { makeProject, type Person, type Project } from "../seed";
import { Api } from "../support/api";
import { flow, type Flow } from "../support/flow";
import { at, listAt, textAt } from "../support/json";

/** Somebody whom only this flow knows, so that others keep what they were granted. */
async function newcomer(acted: Flow, name: string): Promise<Person & { readonly name: string }> {
  const { base, environment } = acted.stage;
  const own = `${name}${acted.seed.suffix}`;
  const invited = { invite_users: { service_accounts: [{ name: own, token_name: "console" }] } };
  const added = await new Api(base, environment.serviceToken).call("PATCH", "/v1/organization/members", invited);
  const user = listAt(added, "added_users")[0];
  return { id: textAt(user, "id"), email: textAt(user, "email"), key: textAt(user, "api_key"), name: own };
}

const grantOn = (acted: Flow, project: Project, gift: Readonly<Record<string, string>>): Promise<unknown> =>
  acted.api.call("POST", "/v1/acl", { object_type: "project", object_id: project.id, ...gift });

const accessPath = (acted: Flow, parameters: Readonly<Record<string, string>>): string =>
  `${acted.path("settings", "access")}?${new URLSearchParams(parameters).toString()}`;

const projectRow = (page: Page, name: string) =>
  page.getByRole("row").filter({ has: page.getByRole("gridcell", { name, exact: true }) });

/** The only chain of the dialog that is open. */
const chain = (page: Page) => page.getByRole("dialog").getByRole("list", { name: "Why" }).getByRole("listitem");

const visibleProjects = async (acted: Flow, person: Person): Promise<readonly string[]> =>
  listAt(await acted.apiOf(person).call("GET", "/v1/project"), "objects").map((one) => textAt(one, "name"));

flow("38 the page says why somebody reads a project, and the grant removed empties their home", async (acted) => {
  const ben = await newcomer(acted, "why-ben");
  const project = await makeProject(acted.api, `why${acted.seed.suffix}`);
  await grantOn(acted, project, { user_id: ben.id, permission: "read" });
  const home = await acted.open(ben, acted.path());
  await projectRow(home, project.name).waitFor();

  const page = await acted.open(acted.seed.people.ann, acted.path("settings", "access"));
  await page.getByRole("combobox", { name: "Kind of object" }).selectOption({ label: "Project" });
  await page.getByRole("combobox", { name: "Project", exact: true }).selectOption({ label: project.name });
  const row = page.getByRole("grid", { name: "Who may do what" }).getByRole("row", { name: new RegExp(`^${ben.name} `) });
  await row.waitFor();
  const reads = row.getByRole("gridcell").nth(2);
  expect((await reads.innerText()).trim()).toBe("granted here");
  await row.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: `${ben.name} on project ${project.name}` });
  await expect
    .poll(() => chain(page).allInnerTexts())
    .toEqual([expect.stringContaining(`${ben.name}: read – project ${project.name}, by ${acted.seed.people.ann.email}, `)]);
  expect(new URL(page.url()).searchParams.get("who")).toBe(ben.id);

  await dialog.getByRole("checkbox", { name: "read", exact: true }).uncheck();
  await expect
    .poll(() => dialog.getByRole("list", { name: "What changes" }).getByRole("listitem").allInnerTexts())
    .toEqual([`− ${ben.name}: read`]);
  await dialog.getByRole("button", { name: "Apply the change" }).click();
  await dialog.getByText(`${ben.name} may do nothing here.`).waitFor();
  await page.keyboard.press("Escape");
  await row.waitFor({ state: "detached" });
  expect(await visibleProjects(acted, ben)).toEqual([]);
  await home.reload();
  await home.getByText("This organization has no project yet.").waitFor();
});

flow("a grant to a group reaches people in a group in it, and a role that is edited changes what they may do", async (acted) => {
  const { suffix } = acted.seed;
  const ben = await newcomer(acted, "nested-ben");
  const project = await makeProject(acted.api, `nested${suffix}`);
  const made = async (what: string, body: unknown) => textAt(await acted.api.call("POST", `/v1/${what}`, body), "id");
  const inner = await made("group", { name: `inner${suffix}`, member_users: [ben.id] });
  const outer = await made("group", { name: `outer${suffix}` });
  const role = await made("role", { name: `Nested${suffix}`, member_permissions: [{ permission: "read" }] });
  await grantOn(acted, project, { group_id: outer, role_id: role });
  expect(await visibleProjects(acted, ben)).toEqual([]);

  const page = await acted.open(acted.seed.people.ann, acted.path("settings", "groups", outer));
  await page.getByRole("combobox", { name: "Group", exact: true }).selectOption({ label: `inner${suffix}` });
  await page.getByRole("button", { name: "Add: Group" }).click();
  await page.getByRole("list", { name: "Groups" }).getByRole("link", { name: `inner${suffix}` }).waitFor();
  await page.getByRole("list", { name: "Through groups" }).getByText(ben.name).waitFor();
  expect(listAt(await acted.api.call("GET", `/v1/group/${outer}`), "member_groups")).toEqual([inner]);
  expect(await visibleProjects(acted, ben)).toEqual([project.name]);

  await page.getByRole("list", { name: "Groups" }).getByRole("link", { name: `inner${suffix}` }).click();
  await page.getByRole("heading", { level: 1, name: `inner${suffix}` }).waitFor();
  await page.getByRole("combobox", { name: "Group", exact: true }).selectOption({ label: `outer${suffix}` });
  await page.getByRole("button", { name: "Add: Group" }).click();
  await page.getByText(`outer${suffix} has inner${suffix} in it. Two groups cannot be in each other.`).waitFor();

  await page.goto(acted.path("settings", "roles", role));
  // Until the rights of the reader are known, nothing can be changed.
  await page.getByRole("checkbox", { name: "read: everything", exact: true, disabled: false }).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Space");
  await expect.poll(() => page.getByRole("list", { name: "Changes" }).getByRole("listitem").allInnerTexts()).toEqual(["+ update everything"]);
  await page.getByRole("button", { name: "Save 1 change" }).click();
  await page.getByRole("list", { name: "Changes" }).waitFor({ state: "detached" });
  const permissions = listAt(await acted.api.call("GET", `/v1/role/${role}`), "member_permissions");
  expect(permissions.map((one) => at(one, "permission"))).toEqual(["read", "update"]);

  await page.goto(accessPath(acted, { type: "project", id: project.id, who: ben.id }));
  await expect
    .poll(() => chain(page).allInnerTexts())
    .toEqual([
      expect.stringContaining(
        `${ben.name}: read, update – group inner${suffix} – group outer${suffix} – role Nested${suffix} – project ${project.name}`,
      ),
    ]);
});

flow("several grants show their difference, and are made together", async (acted) => {
  const [ben, cy] = [await newcomer(acted, "batch-ben"), await newcomer(acted, "batch-cy")];
  const project = await makeProject(acted.api, `batch${acted.seed.suffix}`);
  const page = await acted.open(acted.seed.people.ann, accessPath(acted, { type: "project", id: project.id }));
  await page.getByRole("button", { name: "Grant access" }).click();
  const dialog = page.getByRole("dialog", { name: `Grant access to project ${project.name}` });
  for (const { name } of [ben, cy]) {
    await dialog.getByRole("searchbox", { name: "Find people and groups" }).fill(name);
    await dialog.getByRole("checkbox", { name: new RegExp(`^${name} `) }).check();
  }
  await dialog.getByRole("checkbox", { name: "read", exact: true }).check();
  await expect
    .poll(() => dialog.getByRole("list", { name: "What changes" }).getByRole("listitem").allInnerTexts())
    .toEqual([`+ ${ben.name}: read`, `+ ${cy.name}: read`]);
  await dialog.getByRole("button", { name: "Apply 2 changes" }).click();
  await dialog.waitFor({ state: "detached" });
  for (const person of [ben, cy]) expect(await visibleProjects(acted, person)).toEqual([project.name]);
  await page.getByRole("tab", { name: "By person" }).click();
  await page.getByRole("combobox", { name: "Person" }).selectOption({ label: cy.name });
  const reached = page.getByRole("grid", { name: "What they reach" });
  await reached.getByRole("row", { name: new RegExp(`^${project.name} project`) }).waitFor();
});

flow("somebody is invited, and removed", async (acted) => {
  const email = `dora${acted.seed.suffix}@invited.example`;
  const page = await acted.open(acted.seed.people.ann, acted.path("settings"));
  await page.getByRole("button", { name: "Invite people" }).click();
  await page.getByRole("textbox", { name: "E-mail addresses" }).fill("nobody");
  await page.getByRole("button", { name: "Invite", exact: true }).click();
  await page.getByText("“nobody” is not an e-mail address.").waitFor();
  await page.getByRole("textbox", { name: "E-mail addresses" }).fill(email);
  await page.getByRole("button", { name: "Invite", exact: true }).click();
  await page.getByRole("searchbox", { name: "Filter the members by name" }).fill(email);
  const row = page.getByRole("grid", { name: "Members" }).getByRole("row", { name: new RegExp(`^${email}`) });
  await row.waitFor();
  const found = () => acted.api.call("GET", `/v1/user?email=${encodeURIComponent(email)}`);
  expect(listAt(await found(), "objects")).toHaveLength(1);
  await row.click();
  await page.getByRole("dialog", { name: email }).getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog", { name: `Remove ${email}` }).getByRole("button", { name: "Remove" }).click();
  await row.waitFor({ state: "detached" });
  expect(listAt(await found(), "objects")).toEqual([]);

  const { stranger } = acted.stage.environment;
  if (stranger === null) return;
  await page.getByRole("button", { name: "Invite people" }).click();
  await page.getByRole("textbox", { name: "E-mail addresses" }).fill(stranger);
  await page.getByRole("button", { name: "Invite", exact: true }).click();
  const pending = page.getByRole("list", { name: "Pending invitations" });
  await pending.getByText(stranger, { exact: true }).waitFor();
  const invitations = async () => listAt(await acted.api.call("GET", "/v1/organization/invitations"), "objects");
  expect((await invitations()).map((one) => at(one, "email"))).toContain(stranger);
  await pending.getByRole("button", { name: `Withdraw the invitation of ${stranger}` }).click();
  await page.getByRole("dialog", { name: "Withdraw the invitation" }).getByRole("button", { name: "Withdraw" }).click();
  await pending.getByText(stranger, { exact: true }).waitFor({ state: "detached" });
  expect((await invitations()).map((one) => at(one, "email"))).not.toContain(stranger);
});

flow("an owner sees what somebody sees, changes nothing, and ends it", async (acted) => {
  const ben = await newcomer(acted, "seen-ben");
  const project = await makeProject(acted.api, `seen${acted.seed.suffix}`);
  await grantOn(acted, project, { user_id: ben.id, permission: "read" });
  const page = await acted.open(acted.seed.people.ann, acted.path("settings", "members", ben.id));
  await page.getByRole("dialog", { name: ben.name }).getByRole("button", { name: "See what they see" }).click();
  const bar = page.getByRole("region", { name: "Warnings" }).getByText(`You see what ${ben.name} sees`);
  await bar.waitFor();
  await projectRow(page, project.name).waitFor();
  expect(await page.getByRole("grid", { name: "Projects" }).getByRole("link").allInnerTexts()).toEqual([project.name]);
  await page.getByRole("button", { name: "New project" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill(`never${acted.seed.suffix}`);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText(`Nothing is changed while you see what ${ben.name} sees.`).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "End" }).click();
  await bar.waitFor({ state: "detached" });
  await projectRow(page, acted.seed.demo.name).waitFor();
  const found = await acted.api.call("GET", `/v1/project?project_name=never${acted.seed.suffix}`);
  expect(listAt(found, "objects")).toEqual([]);
});
