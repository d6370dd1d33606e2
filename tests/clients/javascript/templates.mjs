// Builds prompts by the SDK: reads a file of slugs and variables, and writes what each became to another.

import { readFile, writeFile } from "node:fs/promises";
import { nunjucksPlugin } from "@braintrust/templates-nunjucks-js";
import { loadPrompt, registerTemplatePlugin } from "braintrust";

registerTemplatePlugin(nunjucksPlugin);
const [projectName, given, written] = process.argv.slice(2);

async function built({ slug, variables }) {
  try {
    const { span_info: _, ...request } = (await loadPrompt({ projectName, slug })).build(variables);
    return request;
  } catch (error) {
    return { failed: String(error) };
  }
}

const all = [];
for (const one of JSON.parse(await readFile(given, "utf8"))) all.push(await built(one));
await writeFile(written, JSON.stringify(all));
