// Flow 40: three nodes, of which one is killed. It is marked on the page of the cluster, and the pages of the others work on.
//
// The flow needs a cluster of its own, because it ends one of its nodes:
//   ASSAY_FLOWS_CLUSTER_URLS  base URLs of its three nodes, by commas; the third is killed
//   ASSAY_FLOWS_CLUSTER_KEY   API key of an owner whose e-mail address the setting console.operators names
//   ASSAY_FLOWS_KILL          a command for the shell that kills the third node
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Locator, Page } from "playwright-core";
import { afterAll, expect, inject } from "vitest";
import type { Person } from "../seed";
import { Api } from "../support/api";
import { flow, type Flow } from "../support/flow";
import { at, listAt, textAt } from "../support/json";
import { startProxy, type Proxy } from "../support/proxy";

function needed(name: string): string {
  const value = process.env[name] ?? "";
  if (value === "") throw new Error(`set ${name}; the head of tests/cluster/cluster.flow.ts says what this flow needs`);
  return value;
}

const urls = needed("ASSAY_FLOWS_CLUSTER_URLS").split(",");
const key = needed("ASSAY_FLOWS_CLUSTER_KEY");
const kill = needed("ASSAY_FLOWS_KILL");
if (urls.length !== 3) throw new Error("ASSAY_FLOWS_CLUSTER_URLS has to name three nodes");

/** Each node behind a proxy of its own, so that a build can be shown in the place of the one inside the servers. */
const { consoleDir } = inject("stage").environment;
const nodes: readonly Proxy[] = await Promise.all(
  urls.map((url) => startProxy({ nodes: [url], consoleDir, onReport: ({ body }) => console.error(`reported: ${body}`) })),
);
afterAll(() => {
  for (const node of nodes) node.close();
});

const operator: Person = { id: "", email: "", key };

const openOn = (acted: Flow, node: number, path: string): Promise<Page> =>
  acted.open(operator, path, { base: nodes[node - 1]?.url ?? "" });

const cellOf = (page: Page, node: number, place: number): Locator =>
  page.getByRole("table", { name: "Nodes" }).getByRole("row").nth(node).getByRole("cell").nth(place);

const tile = (page: Page, title: string): Locator => page.getByRole("term").filter({ hasText: title }).locator("xpath=..");

flow(
  "40 three nodes, one killed: it is shown, and the pages of the others work on",
  async (acted) => {
    const [first, second] = nodes.map(({ url }) => new Api(url, key));
    if (first === undefined || second === undefined) throw new Error("there are no nodes");
    const organization = textAt(await first.call("GET", "/v1/organization"), "objects", 0, "name");
    const project = textAt(await first.call("POST", "/v1/project", { name: `survives-${Date.now().toString(36)}` }), "id");
    const name = textAt(await first.call("GET", `/v1/project/${project}`), "name");
    const page = await openOn(acted, 1, "/app/cluster");
    await page.getByRole("link", { name: "Cluster", exact: true }).waitFor();
    const killed = await openOn(acted, 3, "/app/cluster");
    const logs = await openOn(acted, 2, `/app/${encodeURIComponent(organization)}/p/${encodeURIComponent(name)}/logs`);
    for (const shown of [page, killed]) {
      for (const node of [1, 2, 3]) await cellOf(shown, node, 0).getByText("Answers", { exact: true }).waitFor();
      await tile(shown, "Nodes").getByText("All answer").waitFor();
    }
    const state = await first.call("GET", "/console/cluster");
    expect(listAt(state, "nodes").map((node) => at(node, "answers"))).toEqual([true, true, true]);
    await expect.poll(() => page.getByRole("table", { name: /^Replicas of Catalog/ }).getByRole("row").count()).toBe(4);

    const started = performance.now();
    await promisify(execFile)("/bin/sh", ["-c", kill]);
    await cellOf(page, 3, 0).getByText("Does not answer").waitFor();
    console.log(`the killed node was marked after ${Math.round(performance.now() - started)} ms`);
    await tile(page, "Nodes").getByText("Silent: 3").waitFor();
    await page.getByRole("region", { name: "Why the cluster is not settled" }).getByText("Node 3 does not answer.").waitFor();
    const cells = page.getByRole("table", { name: /^Replicas of Catalog/ }).getByRole("row", { name: /^Node 3/ }).getByRole("cell");
    await expect.poll(async () => (await cells.allTextContents()).filter((words) => words.endsWith("does not answer")).length).toBeGreaterThan(0);
    await page.getByRole("button", { name: "Node 3", exact: true }).click();
    const panel = page.getByRole("complementary", { name: "Node 3" });
    await panel.getByText("assay cluster remove 3", { exact: true }).waitFor();

    await killed.getByRole("alert").first().waitFor();
    await cellOf(killed, 1, 0).getByText("Answers", { exact: true }).waitFor();

    await expect.poll(async () => (await second.send("POST", `/v1/project_logs/${project}/insert`, { events: [{ id: "after", input: "still here" }] })).status, { timeout: 30_000 }).toBe(200);
    await logs.reload();
    await logs.getByRole("grid").getByRole("gridcell", { name: "still here" }).waitFor();
    const rows = await first.query(`select: id | from: project_logs('${project}')`);
    expect(rows.map((row) => at(row, "id"))).toEqual(["after"]);
    const after = await second.call("GET", "/console/cluster");
    expect(listAt(after, "nodes").map((node) => at(node, "answers"))).toEqual([true, true, false]);
  },
  [/console: Failed to load resource: .* 502 /],
);
