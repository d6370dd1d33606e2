// The project evil: texts that attack, in every place where a text can stand.
import { readFileSync } from "node:fs";
import type { Project } from "../seed";
import type { Api } from "./api";
import { listAt, at, textAt } from "./json";
import { plantPlayground } from "./playgrounds";
import { plantPrompts } from "./prompts";

/** A text that attacks: what it is, and the text, repeated if it says so. */
export interface Attack {
  readonly kind: string;
  readonly text: string;
}

function readCorpus(): readonly Attack[] {
  const parsed: unknown = JSON.parse(readFileSync(new URL("../corpus.json", import.meta.url), "utf8"));
  return listAt(parsed).map((one) => {
    const times = at(one, "times");
    return { kind: textAt(one, "kind"), text: textAt(one, "text").repeat(typeof times === "number" ? times : 1) };
  });
}

export const CORPUS = readCorpus();

const NAME_LETTERS = 200;
/** Texts of this many bytes and more stand in payloads only. */
const LONG = 10_000;

const isLong = (attack: Attack): boolean => attack.text.length >= LONG;

/** A span with the text in all its fields. */
function spanOf({ text }: Attack, index: number, start: number): Readonly<Record<string, unknown>> {
  const id = `evil-${index}`;
  const short = text.slice(0, NAME_LETTERS);
  const at = start + index * 1000;
  return {
    id,
    span_id: id,
    root_span_id: id,
    created: new Date(at).toISOString(),
    span_attributes: { name: short, type: "llm" },
    metrics: { start: at / 1000, end: at / 1000 + 1 },
    input: { messages: [{ role: "user", content: text }, { role: short, content: [{ type: "text", text }] }] },
    output: [{ role: "assistant", content: text, tool_calls: [{ id: "1", function: { name: short, arguments: short } }] }],
    expected: text,
    error: index % 2 === 0 ? short : { message: short, type: short, stack: short },
    metadata: {
      model: short,
      user_id: short,
      [short]: text,
      file: { type: "braintrust_attachment", filename: short, content_type: "text/html", key: `evil-${index}` },
      image: { url: short },
    },
    scores: { [short]: 0.5 },
    tags: [short],
  };
}

/** Some texts of each kind that can be names. */
export function nameAttacks(): readonly string[] {
  const kinds = [...new Set(CORPUS.map((attack) => attack.kind))];
  return kinds.flatMap((kind) => {
    const fit = CORPUS.filter((attack) => attack.kind === kind && !isLong(attack) && !/\p{Cc}/u.test(attack.text));
    return fit.slice(0, 2).map((attack) => attack.text);
  });
}

export async function plantEvil(api: Api, project: Project): Promise<void> {
  const start = Date.now() - 1_800_000;
  const spans = CORPUS.map((attack, index) => spanOf(attack, index, start));
  const short = spans.filter((_, index) => !isLong(CORPUS[index] ?? { kind: "", text: "" }));
  const long = spans.filter((span) => !short.includes(span));
  await api.insert("project_logs", project.id, short);
  for (const span of long) await api.insert("project_logs", project.id, [span]);
  for (const name of nameAttacks()) {
    await api.call("POST", "/v1/project", { name });
    await api.call("POST", "/v1/project_tag", { project_id: project.id, name });
    const score = { name, description: name, score_type: "categorical", categories: [{ name, value: 1 }] };
    await api.call("POST", "/v1/project_score", { ...score, project_id: project.id });
  }
  for (const [index, name] of nameAttacks().entries()) {
    await plantPlayground(api, project, index === 0 ? "Evil" : `Evil${index} ${name}`, name);
    await plantPrompts(api, project, index === 0 ? "Evil" : `Evil${index} ${name}`, `${name} {{${name}}}`);
  }
}
