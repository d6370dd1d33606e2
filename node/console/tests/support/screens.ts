// Every screen that exists, with how to know that it is there.
import type { Locator, Page } from "playwright-core";
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

export const queryPath = (flow: Flow, query: string): string =>
  `${flow.path("query")}?${new URLSearchParams({ q: query }).toString()}`;

/** The screens with ordinary content. */
export function screens(flow: Flow): readonly Shown[] {
  return [
    { name: "sign in", path: "/app/sign-in", isInside: false, ready: heading("Sign in to Assay") },
    { name: "home", path: flow.path(), isInside: true, ready: (page) => page.getByRole("grid", { name: "Projects" }) },
    { name: "logs", path: demoLogs(flow, { cols: "" }), isInside: true, ready: traces },
    {
      name: "logs without rows",
      path: logsPath(flow, flow.seed.demo, { t: "15m" }),
      isInside: true,
      ready: (page) => page.getByText("There is no trace in this range."),
    },
    {
      name: "query",
      path: queryPath(flow, `SELECT id, created FROM project_logs('${flow.seed.demo.id}')`),
      isInside: true,
      ready: (page) => page.getByRole("toolbar", { name: "Query" }),
    },
    { name: "welcome", path: "/app/welcome", isInside: true, ready: heading("Send traces") },
    { name: "not found", path: `${flow.path()}/no/such/page`, isInside: true, ready: heading(/not part of this version/) },
    { name: "no organization", path: "/app/nowhere", isInside: true, ready: heading("No such organization") },
  ];
}
