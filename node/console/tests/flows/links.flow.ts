// Flow 27: the links that SDKs print, and those that people share, lead to the right screen.
import { expect } from "vitest";
import { flow } from "../support/flow";
import { column } from "../support/logs";
import { experimentsPath } from "../support/screens";

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

flow("27 the links of an experiment, of its comparison and of its rows lead to them", async (acted) => {
  const { demo, people } = acted.seed;
  const X2 = experimentsPath(acted, demo, "X2");
  const page = await acted.open(people.ann, X2);
  const grid = page.getByRole("grid", { name: "Compared rows" });
  await expect.poll(async () => [...(await column(grid, "Input"))].sort()).toEqual(["1+1", "2+2", "3+3"]);
  const pair = page.getByRole("complementary", { name: "Open pair" });
  const open = pair.getByRole("region", { name: "Input" });

  await page.goto(`${X2}?c=X1&r=x2b&s=x2b`);
  await open.getByText("2+2").waitFor();
  await page.getByRole("list", { name: "Compared with" }).getByRole("button", { name: "Compare without X1" }).waitFor();
  await page.goto(`${X2}?c=${demo.experiments.X1}&r=x2c`);
  await open.getByText("3+3").waitFor();
  await page.getByRole("list", { name: "Compared with" }).getByText("X1", { exact: true }).waitFor();

  const object = new URLSearchParams({ object_type: "experiment", object_id: demo.experiments.X2, id: "x2a" });
  await page.goto(`${acted.path("object")}?${object.toString()}`);
  await open.getByText("1+1").waitFor();
  expect(new URL(page.url()).pathname).toBe(X2);
  await page.goto(`${X2}?r=nothing`);
  await pair.getByText("No compared experiment has the row nothing.").waitFor();
  await page.goto(experimentsPath(acted, demo, "X9"));
  await page.getByText(`${demo.name} has no experiment X9 that you may see.`).waitFor();
});
