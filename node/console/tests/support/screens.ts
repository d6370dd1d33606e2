// Every screen that exists, with how to know that it is there. Ann has to be an operator of the cluster.
import type { Locator, Page } from "playwright-core";
import type { Project } from "../seed";
import { DEMO_RANGE } from "./demo";
import type { Flow } from "./flow";
import { demoLogs, logsPath, traces } from "./logs";
import { functionsPath, promptsPath } from "./prompts";

export interface Shown {
  readonly name: string;
  /** The address that shows it. */
  readonly path: string;
  /** Whether somebody has to be signed in. */
  readonly isInside: boolean;
  readonly ready: (page: Page) => Locator;
}

const heading =
  (name: string | RegExp) =>
  (page: Page): Locator =>
    page.getByRole("heading", { level: 1, name });

/** What the screen of an organization that does not exist asks for in vain. */
export const NO_ORGANIZATION = /console: Failed to load resource: .* 404 .*\/console\/projects$/;

/** The address of a project's experiments, or of one of them. */
export const experimentsPath = (flow: Flow, project: Project, ...name: readonly string[]): string =>
  flow.path("p", project.name, "experiments", ...name);

/** The address of a project's datasets, or of one of them. */
export const datasetsPath = (flow: Flow, project: Project, ...name: readonly string[]): string =>
  flow.path("p", project.name, "datasets", ...name);

/** The address of a project's playgrounds, or of one of them. */
export const playgroundsPath = (flow: Flow, project: Project, ...id: readonly string[]): string =>
  flow.path("p", project.name, "playgrounds", ...id);

export const queryPath = (flow: Flow, query: string): string =>
  `${flow.path("query")}?${new URLSearchParams({ q: query }).toString()}`;

/** The screens with ordinary content. */
export function screens(flow: Flow): readonly Shown[] {
  const { demo } = flow.seed;
  return [
    { name: "sign in", path: "/app/sign-in", isInside: false, ready: heading("Sign in to Assay") },
    { name: "home", path: flow.path(), isInside: true, ready: (page) => page.getByRole("grid", { name: "Projects" }) },
    { name: "logs", path: demoLogs(flow, { cols: "" }), isInside: true, ready: traces },
    {
      name: "logs without rows",
      path: logsPath(flow, demo, { t: "15m" }),
      isInside: true,
      ready: (page) => page.getByText("There is no trace in this range."),
    },
    {
      name: "logs of spans, by model",
      path: demoLogs(flow, { shape: "spans", g: "metadata.model" }),
      isInside: true,
      ready: (page) => page.getByText("gpt-4o-mini").first(),
    },
    {
      name: "logs with an open trace",
      path: demoLogs(flow, { r: "b1", s: "b3" }),
      isInside: true,
      ready: (page) => page.getByRole("region", { name: "Error" }).getByText("upstream timeout after 30s"),
    },
    {
      name: "query",
      path: queryPath(flow, `SELECT id, created FROM project_logs('${demo.id}')`),
      isInside: true,
      ready: (page) => page.getByRole("toolbar", { name: "Query" }),
    },
    {
      name: "experiments",
      path: experimentsPath(flow, demo),
      isInside: true,
      ready: (page) => page.getByRole("grid", { name: "Experiments" }).getByRole("link", { name: "X2" }),
    },
    {
      name: "comparison",
      path: `${experimentsPath(flow, demo, "X2")}?c=X1&g=metadata.level`,
      isInside: true,
      ready: (page) => page.getByRole("grid", { name: "Compared rows" }).getByRole("gridcell", { name: "3+3" }),
    },
    {
      name: "comparison with an open pair",
      path: `${experimentsPath(flow, demo, "X2")}?c=X1&layout=summary&r=x2b`,
      isInside: true,
      ready: (page) => page.getByRole("complementary", { name: "Open pair" }).getByRole("region", { name: "X2" }),
    },
    {
      name: "datasets",
      path: datasetsPath(flow, demo),
      isInside: true,
      ready: (page) => page.getByRole("grid", { name: "Datasets" }).getByRole("link", { name: "DS1" }),
    },
    {
      name: "dataset",
      path: `${datasetsPath(flow, demo, "DS1")}?r=r1`,
      isInside: true,
      ready: (page) => page.getByRole("complementary", { name: "Row r1" }).getByRole("region", { name: "Input" }),
    },
    {
      name: "playgrounds",
      path: playgroundsPath(flow, demo),
      isInside: true,
      ready: (page) => page.getByRole("grid", { name: "Playgrounds" }).getByRole("link", { name: "PG1" }),
    },
    {
      name: "playground with an open column",
      path: `${playgroundsPath(flow, demo, demo.playground)}?v=v`,
      isInside: true,
      ready: (page) => page.getByRole("complementary", { name: /^Column/ }).getByRole("group", { name: "Messages of the prompt" }),
    },
    {
      name: "playground with an open cell",
      path: `${playgroundsPath(flow, demo, demo.playground)}?v=v&r=input&diff=1`,
      isInside: true,
      ready: (page) => page.getByRole("complementary", { name: "Open cell" }).getByRole("region", { name: "Output" }),
    },
    {
      name: "monitor",
      path: `${flow.path("p", demo.name, "monitor")}?${new URLSearchParams({ t: DEMO_RANGE }).toString()}`,
      isInside: true,
      ready: (page) => page.getByRole("region", { name: "Traces", exact: true }).getByRole("slider"),
    },
    {
      name: "trace",
      path: flow.path("p", demo.name, "trace", "a1"),
      isInside: true,
      ready: (page) => page.getByRole("treegrid").getByRole("row", { name: /openai\.chat/ }),
    },
    {
      name: "trace as a thread",
      path: `${flow.path("p", demo.name, "trace", "a1")}?lens=thread`,
      isInside: true,
      ready: (page) => page.getByRole("button", { name: "Thread", pressed: true }),
    },
    {
      name: "trace as a flame graph",
      path: `${flow.path("p", demo.name, "trace", "a1")}?lens=flame`,
      isInside: true,
      ready: (page) => page.getByRole("button", { name: "Flame", pressed: true }),
    },
    {
      name: "difference of a span",
      path: `${flow.path("p", demo.name, "trace", "c1")}?s=c3&tab=diff`,
      isInside: true,
      ready: (page) => page.getByRole("tabpanel", { name: "Diff" }),
    },
    {
      name: "prompts",
      path: promptsPath(flow, demo),
      isInside: true,
      ready: (page) => page.getByRole("grid", { name: "Prompts" }).getByRole("link", { name: "Answer" }),
    },
    {
      name: "prompt",
      path: promptsPath(flow, demo, "answer"),
      isInside: true,
      ready: (page) => page.getByRole("textbox", { name: "Text of message 2" }),
    },
    {
      name: "versions of a hostile prompt",
      path: `${promptsPath(flow, flow.seed.evil, "evil")}?tab=versions&as=yaml`,
      isInside: true,
      ready: (page) => page.getByRole("list", { name: "Versions" }).getByRole("listitem"),
    },
    {
      name: "tool",
      path: functionsPath(flow, flow.seed.evil, "evil-tool"),
      isInside: true,
      ready: (page) => page.getByRole("region", { name: "Arguments: Arguments" }),
    },
    { name: "members", path: flow.path("settings"), isInside: true, ready: (page) => page.getByRole("grid", { name: "Members" }) },
    { name: "groups", path: flow.path("settings", "groups"), isInside: true, ready: (page) => page.getByRole("grid", { name: "Groups" }) },
    { name: "roles", path: flow.path("settings", "roles"), isInside: true, ready: (page) => page.getByRole("grid", { name: "Roles" }) },
    {
      name: "role",
      path: flow.path("settings", "roles", "a55a0001-0000-4000-8000-000000000002"),
      isInside: true,
      ready: (page) => page.getByRole("table", { name: "Permissions" }),
    },
    {
      name: "access",
      path: `${flow.path("settings", "access")}?type=project&id=${demo.id}`,
      isInside: true,
      ready: (page) => page.getByRole("grid", { name: "Who may do what" }),
    },
    {
      name: "access of a person",
      path: `${flow.path("settings", "access")}?type=project&id=${demo.id}&who=${flow.seed.people.ben.id}`,
      isInside: true,
      ready: (page) => page.getByRole("dialog").getByRole("list", { name: "Why" }),
    },
    { name: "API keys", path: flow.path("settings", "keys"), isInside: true, ready: (page) => page.getByRole("grid", { name: "API keys" }) },
    {
      name: "service tokens",
      path: flow.path("settings", "tokens"),
      isInside: true,
      ready: (page) => page.getByRole("grid", { name: "Service tokens" }),
    },
    { name: "AI secrets", path: flow.path("settings", "secrets"), isInside: true, ready: heading("AI secrets") },
    { name: "environment variables", path: flow.path("settings", "env"), isInside: true, ready: heading("Environment variables") },
    {
      name: "audit log",
      path: `${flow.path("settings", "audit")}?r=1`,
      isInside: true,
      ready: (page) => page.getByRole("region", { name: "Chain" }).getByText(/^Chain verified to/),
    },
    {
      name: "review",
      path: flow.path("p", demo.name, "review"),
      isInside: true,
      ready: (page) => page.getByRole("list", { name: "Queues" }).getByRole("link", { name: "All pending" }),
    },
    {
      name: "review of a row",
      path: `${flow.path("p", flow.seed.evil.name, "review", "pending")}?r=evil-3`,
      isInside: true,
      ready: (page) => page.getByRole("region", { name: "Your review" }),
    },
    {
      name: "scores of a review",
      path: flow.path("p", flow.seed.evil.name, "review", "scores"),
      isInside: true,
      ready: (page) => page.getByRole("list", { name: "Scores" }),
    },
    {
      name: "usage",
      path: `${flow.path("settings", "usage")}?${new URLSearchParams({ t: DEMO_RANGE }).toString()}`,
      isInside: true,
      ready: (page) => page.getByRole("table", { name: "Spending by model" }).getByRole("rowheader", { name: "gpt-4o", exact: true }),
    },
    { name: "budgets", path: flow.path("settings", "budgets"), isInside: true, ready: heading("Budgets") },
    { name: "retention", path: flow.path("settings", "retention"), isInside: true, ready: heading("Retention") },
    { name: "cluster", path: "/app/cluster", isInside: true, ready: (page) => page.getByRole("table", { name: "Nodes" }) },
    { name: "welcome", path: "/app/welcome", isInside: true, ready: heading("Send traces") },
    { name: "not found", path: `${flow.path()}/no/such/page`, isInside: true, ready: heading(/no such page/) },
    { name: "no organization", path: "/app/nowhere", isInside: true, ready: heading("No such organization") },
  ];
}
