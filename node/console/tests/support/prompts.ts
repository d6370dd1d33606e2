// Prompts and functions that the screens show, planted through the public API.
import type { Project } from "../seed";
import type { Api } from "./api";
import type { Flow } from "./flow";
import { textAt } from "./json";

/** The address of a project's prompts, or of one of them. */
export const promptsPath = (flow: Flow, project: Project, ...slug: readonly string[]): string =>
  flow.path("p", project.name, "prompts", ...slug);

/** The address of a project's functions, or of one of them. */
export const functionsPath = (flow: Flow, project: Project, ...slug: readonly string[]): string =>
  flow.path("p", project.name, "functions", ...slug);

/** The data of a prompt with a model and one message of a user. */
export const promptData = (model: string, content: string, more: Readonly<Record<string, unknown>> = {}) => ({
  prompt: { type: "chat", messages: [{ role: "system", content: "Be brief." }, { role: "user", content }] },
  options: { model, params: { temperature: 0.2 } },
  ...more,
});

/** Plants a prompt, a judge and a tool, below names that begin alike. Returns the id of the prompt. */
export async function plantPrompts(api: Api, project: Project, name: string, text: string): Promise<string> {
  const slug = name.toLowerCase();
  const place = { project_id: project.id };
  const judge = promptData("gpt-4o", text, { parser: { type: "llm_classifier", use_cot: true, choice_scores: { yes: 1, no: 0 } } });
  const code = { type: "inline", runtime_context: { runtime: "node", version: "20" }, code: `// ${text}` };
  const prompt = { ...place, name, slug, description: text, prompt_data: promptData("gpt-4o", text), function_data: { type: "prompt" } };
  const id = textAt(await api.call("POST", "/v1/function", prompt), "id");
  await api.call("POST", "/v1/function", { ...place, name: `${name} judge`, slug: `${slug}-judge`, function_type: "scorer", function_data: { type: "prompt" }, prompt_data: judge });
  await api.call("POST", "/v1/function", {
    ...place,
    name: `${name} tool`,
    slug: `${slug}-tool`,
    description: text,
    function_type: "tool",
    function_data: { type: "code", data: code },
    function_schema: { parameters: { type: "object", properties: { question: { type: "string", description: text } } } },
  });
  return id;
}
