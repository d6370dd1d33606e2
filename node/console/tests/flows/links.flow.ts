// Flow 27, as far as lists go: the links that SDKs print lead to the right screen.
import { expect } from "vitest";
import { flow } from "../support/flow";

flow("27 the link of an SDK to a row leads to the logs with its trace and span", async (acted) => {
  const { demo, people } = acted.seed;
  const page = await acted.open(people.ann, `${acted.path("p", demo.name, "logs")}?oid=a3`);
  await expect.poll(() => new URL(page.url()).searchParams.get("r")).toBe("a1");
  const { searchParams } = new URL(page.url());
  expect([searchParams.get("s"), searchParams.get("oid")]).toEqual(["a3", null]);
  await page.goto(acted.path("p", demo.name));
  await expect.poll(() => new URL(page.url()).pathname).toBe(acted.path("p", demo.name, "logs"));
  await page.goto(`${acted.path("p", demo.name, "logs")}?oid=nothing`);
  await page.getByText("The project has no row with the id nothing.").waitFor();
});
