// Tools: with a schema, asynchronous, of a class, that print, that fail, and that call another tool.
import { invoke, traced, wrapTraced } from "braintrust";
import pluralize from "pluralize";
import { z } from "zod";
import { project } from "./project";

project.tools.create({
  name: "Add",
  slug: "add",
  description: "Adds two numbers",
  parameters: z.object({ a: z.number(), b: z.number().optional() }),
  returns: z.number(),
  handler: ({ a, b = 10 }) => a + b,
});

project.tools.create({
  name: "Later",
  slug: "later",
  parameters: z.object({ words: z.array(z.string()) }),
  handler: async ({ words }: { words: string[] }) => {
    await new Promise((done) => setTimeout(done, 5));
    return { words: words.map((word) => word.toUpperCase()), absent: null, "ünï": "é\u2028" };
  },
});

class Shelf {
  #price = 3;

  priced = async ({ item, count }: { item: string; count: number }) => {
    return `${count} ${pluralize(item, count)} for ${count * this.#price}`;
  };
}

// The package `pluralize` is part of the bundle.
project.tools.create({
  name: "Shelf",
  slug: "shelf",
  parameters: z.object({ item: z.string(), count: z.number().int() }),
  handler: new Shelf().priced,
});

project.tools.create({
  name: "Talk",
  slug: "talk",
  parameters: z.object({ lines: z.number() }),
  handler: ({ lines }: { lines: number }) => {
    for (let line = 1; line <= lines; line += 1) console.log(`line ${line}`);
    console.error("the end");
    return lines;
  },
});

class NoSuchCity extends Error {
  override name = "NoSuchCity";
}

function find(city: string): never {
  throw new NoSuchCity(`there is no city named ${city}`);
}

project.tools.create({
  name: "Fail",
  slug: "fail",
  parameters: z.object({ city: z.string() }),
  handler: ({ city }: { city: string }) => find(city),
});

// Its call of another function is below its own span.
project.tools.create({
  name: "Nested",
  slug: "nested",
  parameters: z.object({ project: z.string() }),
  handler: async ({ project: projectName }: { project: string }) =>
    2 * (await invoke<unknown, number>({ projectName, slug: "add", input: { a: 1, b: 2 } })),
});

const step = wrapTraced(async (text: string) => text.length, { name: "step" });

project.tools.create({
  name: "Steps",
  slug: "steps",
  parameters: z.object({ text: z.string() }),
  handler: ({ text }: { text: string }) =>
    traced(
      async (span) => {
        span.log({ metadata: { seen: true } });
        return (await step(text)) + (await step("ab"));
      },
      { name: "steps" },
    ),
});
