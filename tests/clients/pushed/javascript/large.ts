// A bundle with a dependency of several megabytes.
import ts from "typescript";
import { z } from "zod";
import { project } from "./project";

project.tools.create({
  name: "Compile",
  slug: "compile",
  parameters: z.object({ source: z.string() }),
  handler: ({ source }: { source: string }) =>
    ts.transpileModule(source, { compilerOptions: { target: ts.ScriptTarget.ES2020 } }).outputText.trim(),
});
