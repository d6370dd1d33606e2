// Every screen that exists, with how to know that it is there.
import type { Locator, Page } from "playwright-core";
import type { Project } from "../seed";
import { DEMO_RANGE } from "./demo";
import type { Flow } from "./flow";
import { demoLogs, logsPath, traces } from "./logs";

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
    { name: "welcome", path: "/app/welcome", isInside: true, ready: heading("Send traces") },
    { name: "not found", path: `${flow.path()}/no/such/page`, isInside: true, ready: heading(/not part of this version/) },
    { name: "no organization", path: "/app/nowhere", isInside: true, ready: heading("No such organization") },
  ];
}
