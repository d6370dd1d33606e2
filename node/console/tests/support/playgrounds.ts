// Playgrounds as they are kept, with texts of one's own.
import type { Project } from "../seed";
import type { Api } from "./api";
import { textAt } from "./json";

/** Plants a playground with one prompt on one model and one run, in all of which a text stands. Returns its id. */
export async function plantPlayground(api: Api, project: Project, name: string, text: string): Promise<string> {
  const playground = {
    prompts: [{ id: "p", name: text, data: { prompt: { type: "chat", messages: [{ role: "user", content: text }] } }, source: null }],
    variants: [{ id: "v", prompt: "p", model: text, params: { stop: text } }],
    scorers: [{ kind: "global", name: text }],
    judge: "",
    rows: { kind: "input", input: text, expected: text },
  };
  const body = { project_id: project.id, name, metadata: { assay_playground: playground } };
  const id = textAt(await api.call("POST", "/v1/prompt_session", body), "id");
  const scores = [{ scorer: text, name: text, value: 0.5, error: null, reason: text }];
  const run = {
    id: "v:input",
    span_id: id,
    root_span_id: id,
    prompt_session_id: id,
    log_id: "x",
    output: text,
    metrics: { start: 1, end: 2 },
    metadata: { assay_cell: { variant: "v", row: "input", of: "", scores, figures: null } },
    span_attributes: { name: "eval", type: "eval" },
  };
  await api.call("POST", "/logs3", { rows: [run], api_version: 2 });
  return id;
}
