// Flow 37: reviews by keys alone, and reviews of which nobody sees others' before their own are sent.
import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Person, Project } from "../seed";
import { Api } from "../support/api";
import { flow, PATIENCE, type Flow } from "../support/flow";
import { at, listAt, textAt } from "../support/json";
import { ownProject, smallTrace, tabTo } from "../support/logs";
import { tracePath } from "../support/trace";

const PENDING = { "~__bt_review_lists": { __bt_default_review_list: { status: "PENDING" } } };
const STATUS = 'metadata."~__bt_review_lists"."__bt_default_review_list".status';

const reviewPath = (acted: Flow, project: Project, ...queue: readonly string[]): string =>
  acted.path("p", project.name, "review", ...queue);

/** Makes a project with two scores. */
async function reviewed(acted: Flow, name: string, settings: Readonly<Record<string, unknown>>): Promise<Project> {
  const project = await ownProject(acted, name);
  await acted.api.call("PATCH", `/v1/project/${project.id}`, { settings });
  const categories = [
    { name: "Kind", value: 1 },
    { name: "Rude", value: 0 },
  ];
  const about = { project_id: project.id };
  await acted.api.call("POST", "/v1/project_score", { ...about, name: "Tone", score_type: "categorical", categories });
  await acted.api.call("POST", "/v1/project_score", { ...about, name: "Quality", score_type: "slider" });
  return project;
}

/** Makes somebody who may change the rows of a project, and not the project. */
async function reviewer(acted: Flow, project: Project, name: string): Promise<Person> {
  const setup = new Api(acted.api.base, acted.stage.environment.serviceToken);
  const accounts = [{ name: `${name}${acted.seed.suffix}`, token_name: "console" }];
  const added = await setup.call("PATCH", "/v1/organization/members", { invite_users: { service_accounts: accounts } });
  const user = listAt(added, "added_users")[0];
  const id = textAt(user, "id");
  for (const [permission, kind] of [["read", null], ["update", "project_log"]] as const) {
    const grant = { object_type: "project", object_id: project.id, user_id: id, permission, restrict_object_type: kind };
    await acted.api.call("POST", "/v1/acl", grant);
  }
  return { id, email: textAt(user, "email"), key: textAt(user, "api_key") };
}

const statuses = async (acted: Flow, project: Project): Promise<readonly unknown[]> => {
  const query = `select: ${STATUS} as status | from: project_logs('${project.id}') | filter: is_root`;
  return (await acted.api.query(query)).map((row) => at(row, "status"));
};

/** Waits until a row is shown and its form has the focus. */
async function expectRow(page: Page, name: string): Promise<void> {
  await page.getByRole("heading", { level: 2, name, exact: true }).waitFor();
  const form = page.getByRole("region", { name: "Your review" });
  const isFocused = (): Promise<boolean> => form.evaluate((element) => element.contains(document.activeElement));
  await expect.poll(isFocused, { timeout: PATIENCE }).toBe(true);
}

flow("37 five reviews are given by keys alone", async (acted) => {
  const project = await reviewed(acted, "by-keys", {});
  const names = ["first", "second", "third", "fourth", "fifth"];
  const rows = names.map((id, index) =>
    smallTrace({ id, ago: 60_000 * (9 - index) }, { span_attributes: { name: id, type: "task" }, metadata: PENDING }),
  );
  for (const row of rows) await acted.api.insert("project_logs", project.id, [row]);

  const page = await acted.open(acted.seed.people.ann, reviewPath(acted, project));
  await page.getByText("5 waiting").first().waitFor();
  await tabTo(page, page.getByRole("link", { name: "All pending" }));
  await page.keyboard.press("Enter");
  await expectRow(page, "first");
  await page.keyboard.press("s");
  await expectRow(page, "second");
  await page.keyboard.press("z");
  for (const name of names) {
    await expectRow(page, name);
    await page.keyboard.press("1");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("9");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.type(`${name} is fine, 100 %`);
    await page.keyboard.press("Control+Enter");
  }
  await page.getByText("All done. You have reviewed 5 rows.").waitFor();
  await expect.poll(() => statuses(acted, project), { timeout: PATIENCE }).toEqual(names.map(() => "COMPLETE"));
  for (const name of names) {
    const [review] = listAt(await acted.api.call("GET", `/v1/review/project_logs/${project.id}/${name}`), "reviews");
    expect([at(review, "scores"), at(review, "comment")]).toEqual([{ Tone: 1, Quality: 1 }, `${name} is fine, 100 %`]);
  }
  await page.goto(reviewPath(acted, project));
  await page.getByText("5 of 5 done").first().waitFor();
});

/** Collects the bodies of all answers that a page gets. */
function collect(page: Page): () => Promise<string> {
  const bodies: Promise<string>[] = [];
  page.on("response", (response) => {
    if (!response.url().includes("/app/assets/")) bodies.push(response.text().catch(() => ""));
  });
  return async () => (await Promise.all(bodies)).join("\n");
}

flow("37 in a blind project, others' scores reach no page before one's own are sent", async (acted) => {
  const project = await reviewed(acted, "blind", { blind_reviews: true, require_all_human_review_scores: true });
  const ann = await reviewer(acted, project, "ann-reviews");
  const ben = await reviewer(acted, project, "ben-reviews");
  const metadata = { ...PENDING, "~__bt_assignments": [ann.id, ben.id] };
  await acted.api.insert("project_logs", project.id, [smallTrace({ id: "row", ago: 60_000 }, { metadata })]);
  const path = `/v1/review/project_logs/${project.id}/row`;
  const secret = "nobody may read this yet";
  const his = { scores: { Quality: 0.8125, Tone: 0 }, comment: secret, submitted: true };
  await acted.apiOf(ben).call("PUT", path, his);
  const leaks = (text: string): readonly string[] => [secret, "0.8125", "Review by"].filter((words) => text.includes(words));

  const page = await acted.open(ann, tracePath(acted, project, "row"));
  const received = collect(page);
  await page.reload();
  await page.getByText("answer row").first().waitFor();
  await page.goto(reviewPath(acted, project, "assigned"));
  await expectRow(page, "chat");
  await page.keyboard.press("o");
  await page.getByText("The whole trace is shown when your review is sent.").waitFor();
  await page.keyboard.press("1");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Not answered yet: Quality.").first().waitFor();
  await page.keyboard.press("5");
  expect(leaks(await received())).toEqual([]);
  expect(await statuses(acted, project)).toEqual(["PENDING"]);

  await page.keyboard.press("Control+Enter");
  await page.getByText("All done. You have reviewed 1 row.").waitFor();
  await expect.poll(() => statuses(acted, project), { timeout: PATIENCE }).toEqual(["COMPLETE"]);
  await page.getByRole("button", { name: "Agreement" }).click();
  const agreement = page.getByRole("dialog", { name: "Agreement of the reviewers" });
  await agreement.getByRole("row", { name: /^Quality 1 0 % 0\.31/ }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("o");
  await page.keyboard.press("z");
  await expectRow(page, "chat");
  await page.getByText("Reviews of everybody").click();
  await page.getByRole("row", { name: /ben-reviews.* Rude 0\.81/ }).waitFor();
  await page.getByRole("row", { name: /^You Kind 0\.50/ }).waitFor();
  const shown = await acted.apiOf(ann).call("GET", path);
  expect([at(shown, "hidden"), listAt(shown, "reviews").length]).toEqual([false, 2]);
});
