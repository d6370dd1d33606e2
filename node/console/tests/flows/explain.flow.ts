// Flow 17: what the traces with errors have more often than the others.
import { expect } from "vitest";
import { flow } from "../support/flow";
import { at, numberAt } from "../support/json";
import { column, logsPath, traces } from "../support/logs";

const ORDINARY = "span_attributes.name = 'chat'";

flow("17 the explanation of the errors ranks the planted cause first, and a click filters by it", async (acted) => {
  const { big, people } = acted.seed;
  const columns = "root_span_id,metadata.region,error";
  const page = await acted.open(people.ann, logsPath(acted, big, { t: "1d", q: ORDINARY, cols: columns }));
  await traces(page).getByRole("row").nth(1).waitFor();
  await page.getByRole("button", { name: "Explain" }).click();
  const fields = page.getByRole("list", { name: "Fields by their difference" });
  const first = fields.getByRole("listitem").first();
  await first.getByRole("heading", { name: /^metadata\.region/ }).waitFor();
  const headings = await fields.getByRole("heading").allInnerTexts();
  expect(headings.slice(0, 2).map((heading) => heading.trim().split(/\s/)[0])).toEqual(["metadata.region", "metadata.model"]);

  const counted = await acted.api.query(
    [
      "dimensions: metadata.region as region, error is not null as failed",
      "measures: count(1) as n",
      `from: project_logs('${big.id}')`,
      `filter: ${ORDINARY}`,
    ].join(" | "),
  );
  const countOf = (failed: boolean, region: string | null): number =>
    counted
      .filter((row) => at(row, "failed") === failed && (region === null || at(row, "region") === region))
      .reduce<number>((sum, row) => sum + numberAt(row, "n"), 0);
  const share = Math.round((100 * countOf(true, "eu-3")) / countOf(true, null));
  const cause = first.getByRole("button", { name: /^Filter by metadata\.region eu-3/ });
  expect(await cause.getAttribute("aria-label")).toContain(`eu-3: ${share} % of the selection`);

  await cause.click();
  await expect.poll(() => new URL(page.url()).searchParams.get("q")).toContain("metadata.region = 'eu-3'");
  const regions = async (): Promise<readonly string[]> => [...new Set(await column(traces(page), "metadata.region"))];
  await expect.poll(regions).toEqual(["eu-3"]);
});
