// One failing trace among very many: the steps by which somebody who knows only that it failed finds it, and their times.
import { beforeAll, expect, inject, vi } from "vitest";
import { WIDE_ROWS } from "../seed";
import { Api } from "../support/api";
import { plantWide } from "../support/bulk";
import { flow } from "../support/flow";
import { smallTrace, traces } from "../support/logs";
import { milliseconds } from "../support/times";

vi.setConfig({ testTimeout: 600_000 });

const { base, seed, environment } = inject("stage");
const api = new Api(base, seed.people.ann.key);
const ROOT = "needle";
const FAULT = "tool search_orders: upstream timeout after 30 s";
/** Where in the hour of the other traces the failing one stands. */
const AGO_MS = 1_700_000;

beforeAll(async () => {
  await plantWide(api, seed.wide, { from: WIDE_ROWS, to: Math.max(WIDE_ROWS, environment.wideRows) });
  const span = (id: string, more: Readonly<Record<string, unknown>>) => ({
    ...smallTrace({ id, ago: AGO_MS }),
    root_span_id: ROOT,
    ...(id === ROOT ? {} : { span_parents: [ROOT] }),
    ...more,
  });
  await api.insert("project_logs", seed.wide.id, [
    span(ROOT, { input: "Where is my order 4711?", output: "I could not find out." }),
    span("needle-plan", { span_attributes: { name: "plan", type: "llm" } }),
    span("needle-tool", { span_attributes: { name: "search_orders", type: "tool" }, error: FAULT }),
  ]);
}, 600_000);

flow("one failing trace among very many is found from the page of projects", async (acted) => {
  const page = await acted.open(acted.seed.people.ann, acted.path());
  const projects = page.getByRole("grid", { name: "Projects" });
  await projects.waitFor();
  const steps: string[] = [];
  let begun = performance.now();
  const step = (what: string): void => {
    steps.push(`${milliseconds(performance.now() - begun).padStart(8)}  ${what}`);
    begun = performance.now();
  };
  await projects.getByRole("link", { name: seed.wide.name, exact: true }).click();
  await traces(page).getByRole("row").nth(20).waitFor();
  step("a click on the project: its logs show rows");
  const failed = page.getByRole("complementary", { name: "Facets" }).getByRole("button", { name: "With errors, 1 trace" });
  await failed.waitFor();
  step("its facets are counted: one trace has errors");
  await failed.click();
  await expect.poll(() => traces(page).getByRole("row").count()).toBe(2);
  step("a click on that facet: the list has one trace");
  await traces(page).getByRole("row").nth(1).click();
  await page.getByRole("treegrid").getByRole("row").nth(2).waitFor();
  step("a click on the trace: it is open");
  const fault = page.getByRole("region", { name: "Error" }).getByText(FAULT);
  if (!(await fault.isVisible())) await page.keyboard.press("e");
  await fault.waitFor();
  step("the span that failed, with its error");
  console.log([`one failing trace among ${environment.wideRows.toLocaleString("en-US")}`, ...steps].join("\n"));
  expect(new URL(page.url()).searchParams.get("r")).toBe(ROOT);
});
