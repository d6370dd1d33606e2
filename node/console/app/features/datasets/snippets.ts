// Code that reads a dataset, at a version, in Python and TypeScript. The key is always a variable.
import { isQuotable, programQuoted, shellQuoted } from "../../lib/quoting";

export interface SnippetSource {
  readonly origin: string;
  readonly project: string;
  readonly name: string;
  /** A transaction; empty for the newest. */
  readonly version: string;
}

/** Whether the names can stand in code that is copied. */
export const hasSnippet = ({ project, name }: SnippetSource): boolean => isQuotable(project) && isQuotable(name);

/** The environment in which the code runs. */
export const environmentCode = ({ origin }: SnippetSource): string =>
  [
    "export BRAINTRUST_API_KEY=sk-...",
    `export BRAINTRUST_API_URL=${shellQuoted(origin)} BRAINTRUST_APP_URL=${shellQuoted(origin)}`,
  ].join("\n");

export function pythonCode({ project, name, version }: SnippetSource): string {
  const at = version === "" ? "" : `, version=${programQuoted(version)}`;
  return `import braintrust

dataset = braintrust.init_dataset(project=${programQuoted(project)}, name=${programQuoted(name)}${at})
for row in dataset:
    print(row["id"], row.get("input"), row.get("expected"))`;
}

export function typescriptCode({ project, name, version }: SnippetSource): string {
  const at = version === "" ? "" : `, version: ${programQuoted(version)}`;
  return `import { initDataset } from "braintrust";

const dataset = initDataset({ project: ${programQuoted(project)}, dataset: ${programQuoted(name)}${at} });
for await (const row of dataset) {
  console.log(row.id, row.input, row.expected);
}`;
}
