// Playgrounds: their records, and what is in them. The record keeps it in its metadata, whose form is checked here.
import { call } from "./client";
import { isRecord, list, record, text, textOrNull, type Fields } from "./narrow";

/** The saved prompt that a prompt of a playground was taken from. */
export interface PromptSource {
  readonly id: string;
  readonly slug: string;
  readonly version: string;
}

/** What is asked, without the model that is asked. */
export interface PlayPrompt {
  readonly id: string;
  readonly name: string;
  /** The data of a prompt's record. The model and its parameters in it are those of a new variant. */
  readonly data: Fields;
  readonly source: PromptSource | null;
}

/** A column: a prompt on a model. */
export interface Variant {
  readonly id: string;
  /** The id of its prompt. */
  readonly prompt: string;
  readonly model: string;
  readonly params: Fields;
}

export type PlayScorer =
  | { readonly kind: "saved"; readonly id: string; readonly name: string }
  | { readonly kind: "global"; readonly name: string };

/** What the rows are. */
export type PlayRows =
  /** One input; its values are texts, which are read as JSON where they are JSON. */
  | { readonly kind: "input"; readonly input: string; readonly expected: string }
  | { readonly kind: "dataset"; readonly id: string; readonly name: string };

export interface Playground {
  readonly prompts: readonly PlayPrompt[];
  readonly variants: readonly Variant[];
  readonly scorers: readonly PlayScorer[];
  /** The model of those scorers of every organization that ask one; empty for the server's own choice. */
  readonly judge: string;
  readonly rows: PlayRows;
}

export interface PlaygroundRecord {
  readonly id: string;
  readonly name: string;
  readonly created: string;
  readonly playground: Playground;
  /** What else the metadata has, which is kept. */
  readonly rest: Fields;
}

/** The key of the metadata below which a playground is kept. */
const KEY = "assay_playground";

export const NO_ROWS: PlayRows = { kind: "input", input: "", expected: "" };

const EMPTY: Playground = { prompts: [], variants: [], scorers: [], judge: "", rows: NO_ROWS };

const fieldsIn = (fields: Fields, key: string): Fields => {
  const value = fields[key];
  return isRecord(value) ? value : {};
};

/** The members of a list that are objects, read one by one; those that cannot be read are left out. */
function each<Kind>(fields: Fields, key: string, read: (one: Fields) => Kind | null): readonly Kind[] {
  const value = fields[key];
  if (!Array.isArray(value)) return [];
  return value.filter(isRecord).flatMap((one) => read(one) ?? []);
}

function readSource(fields: Fields): PromptSource | null {
  const [id, slug, version] = ["id", "slug", "version"].map((key) => textOrNull(fields, key));
  return id == null || slug == null || version == null ? null : { id, slug, version };
}

function readScorer(fields: Fields): PlayScorer | null {
  const [id, name] = [textOrNull(fields, "id"), textOrNull(fields, "name")];
  if (name === null) return null;
  if (fields["kind"] === "global") return { kind: "global", name };
  return fields["kind"] === "saved" && id !== null ? { kind: "saved", id, name } : null;
}

function readRows(fields: Fields): PlayRows {
  const of = (key: string): string => textOrNull(fields, key) ?? "";
  if (fields["kind"] === "dataset" && of("id") !== "") return { kind: "dataset", id: of("id"), name: of("name") };
  return { kind: "input", input: of("input"), expected: of("expected") };
}

/** Reads a playground out of anything. What has another form is left out. */
export function readPlayground(value: unknown): Playground {
  if (!isRecord(value)) return EMPTY;
  const prompts = each(value, "prompts", (one): PlayPrompt | null => {
    const id = textOrNull(one, "id");
    const source = readSource(fieldsIn(one, "source"));
    return id === null ? null : { id, name: textOrNull(one, "name") ?? "", data: fieldsIn(one, "data"), source };
  });
  const known = new Set(prompts.map(({ id }) => id));
  const variants = each(value, "variants", (one): Variant | null => {
    const [id, prompt] = [textOrNull(one, "id"), textOrNull(one, "prompt")];
    if (id === null || prompt === null || !known.has(prompt)) return null;
    return { id, prompt, model: textOrNull(one, "model") ?? "", params: fieldsIn(one, "params") };
  });
  return {
    prompts,
    variants,
    scorers: each(value, "scorers", readScorer),
    judge: textOrNull(value, "judge") ?? "",
    rows: readRows(fieldsIn(value, "rows")),
  };
}

function readRecord(value: unknown): PlaygroundRecord {
  const found = record(value, "playground");
  const metadata = fieldsIn(found, "metadata");
  const { [KEY]: kept, ...rest } = metadata;
  return {
    id: text(found, "id"),
    name: text(found, "name"),
    created: textOrNull(found, "created") ?? "",
    playground: readPlayground(kept),
    rest,
  };
}

/** A signal as an option, which may not be undefined. */
const until = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });

const objects = (answer: unknown, what: string): readonly unknown[] => list(record(answer, what), "objects");

export async function readPlaygrounds(organization: string, projectId: string, signal?: AbortSignal) {
  const answer = await call("GET", `/v1/prompt_session?project_id=${projectId}`, { organization, ...until(signal) });
  return objects(answer, "playgrounds").map(readRecord);
}

/** The playground of an id, or null if there is none that this person may see. */
export async function findPlayground(organization: string, projectId: string, id: string, signal?: AbortSignal) {
  if (!/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(id)) return null;
  const path = `/v1/prompt_session?project_id=${projectId}&ids=${id}`;
  const [first] = objects(await call("GET", path, { organization, ...until(signal) }), "playgrounds");
  return first === undefined ? null : readRecord(first);
}

export async function makePlayground(organization: string, projectId: string, name: string, playground: Playground) {
  const body = { project_id: projectId, name, metadata: { [KEY]: playground } };
  return readRecord(await call("POST", "/v1/prompt_session", { organization, body }));
}

export async function savePlayground(organization: string, { id, rest }: PlaygroundRecord, playground: Playground) {
  const body = { metadata: { ...rest, [KEY]: playground } };
  return readRecord(await call("PATCH", `/v1/prompt_session/${id}`, { organization, body }));
}

export async function renamePlayground(organization: string, id: string, name: string) {
  return readRecord(await call("PATCH", `/v1/prompt_session/${id}`, { organization, body: { name } }));
}

export async function deletePlayground(organization: string, id: string): Promise<void> {
  await call("DELETE", `/v1/prompt_session/${id}`, { organization });
}

/** The models that a project can reach, by name. */
export async function readModels(organization: string, projectId: string, signal?: AbortSignal): Promise<readonly string[]> {
  const headers = { "x-bt-project-id": projectId };
  const answer = record(await call("GET", "/v1/models", { organization, headers, ...until(signal) }), "models");
  return list(answer, "data").map((one) => text(record(one, "model"), "id"));
}
