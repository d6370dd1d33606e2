// Changes of a playground: its prompts, and its columns, each of which is a prompt on a model.
import type { Fields } from "../../api/narrow";
import type { Playground, PlayPrompt, PromptSource, Variant } from "../../api/playground";

export interface Named {
  readonly name: string;
  readonly data: Fields;
  readonly source: PromptSource | null;
}

const fieldsIn = (fields: Fields, key: string): Fields => {
  const value = fields[key];
  return typeof value === "object" && value !== null && !Array.isArray(value) ? Object.fromEntries(Object.entries(value)) : {};
};

export const newId = (): string => crypto.randomUUID().slice(0, 8);

/** The model that the data of a prompt name; empty if they name none. */
export const modelIn = (data: Fields): string => {
  const model = fieldsIn(data, "options")["model"];
  return typeof model === "string" ? model : "";
};

export const paramsIn = (data: Fields): Fields => fieldsIn(fieldsIn(data, "options"), "params");

/** The prompt in the data of a record: its messages or its text. */
export const promptIn = (data: Fields): Fields => {
  const prompt = fieldsIn(data, "prompt");
  return "type" in prompt ? prompt : { type: "chat", messages: [], ...prompt };
};

/** A name that is not taken: `Prompt 2`. */
export function freeOf(taken: readonly string[], wanted: string): string {
  if (!taken.includes(wanted)) return wanted;
  const stem = wanted.replace(/ \d+$/, "");
  for (let number = 2; ; number += 1) if (!taken.includes(`${stem} ${number}`)) return `${stem} ${number}`;
}

const freeName = ({ prompts }: Playground, wanted: string): string => freeOf(prompts.map(({ name }) => name), wanted);

/** The first prompt of a new playground. */
export const BLANK: Named = {
  name: "Prompt",
  data: { prompt: { type: "chat", messages: [{ role: "user", content: "{{input}}" }] } },
  source: null,
};

const variantOf = (prompt: PlayPrompt, model: string): Variant => ({
  id: newId(),
  prompt: prompt.id,
  model,
  params: paramsIn(prompt.data),
});

/** Puts columns behind those of the same prompt, or at the end. */
function withVariants(playground: Playground, added: readonly Variant[]): Playground {
  const variants = [...playground.variants];
  for (const one of added) {
    const last = variants.findLastIndex(({ prompt }) => prompt === one.prompt);
    variants.splice(last < 0 ? variants.length : last + 1, 0, one);
  }
  return { ...playground, variants };
}

/** Adds a prompt with a column for each model: for its own one if none is given. */
export function withPrompt(playground: Playground, named: Named, models: readonly string[] = []): Playground {
  const prompt: PlayPrompt = { ...named, id: newId(), name: freeName(playground, named.name) };
  const asked = models.length > 0 ? models : [modelIn(named.data)];
  const next = { ...playground, prompts: [...playground.prompts, prompt] };
  return withVariants(next, asked.map((model) => variantOf(prompt, model)));
}

/**
 * Adds a column for each of some prompts on each of some models. A column that is there already is not added, and one
 * without a model gets the first.
 */
export function withModels(playground: Playground, prompts: readonly string[], models: readonly string[]): Playground {
  let next = playground;
  for (const prompt of playground.prompts.filter(({ id }) => prompts.includes(id))) {
    for (const model of models) {
      const own = next.variants.filter((one) => one.prompt === prompt.id);
      const unset = own.find((one) => one.model === "");
      if (own.some((one) => one.model === model)) continue;
      next = unset === undefined ? withVariants(next, [variantOf(prompt, model)]) : changedVariant(next, unset.id, { model });
    }
  }
  return next;
}

/** Takes a column away, and its prompt with its last column. */
export function withoutVariant(playground: Playground, id: string): Playground {
  const variants = playground.variants.filter((one) => one.id !== id);
  const used = new Set(variants.map(({ prompt }) => prompt));
  return { ...playground, variants, prompts: playground.prompts.filter((prompt) => used.has(prompt.id)) };
}

export const changedVariant = (playground: Playground, id: string, change: Partial<Pick<Variant, "model" | "params">>): Playground => ({
  ...playground,
  variants: playground.variants.map((one) => (one.id === id ? { ...one, ...change } : one)),
});

export const changedPrompt = (playground: Playground, id: string, change: Partial<Omit<PlayPrompt, "id">>): Playground => ({
  ...playground,
  prompts: playground.prompts.map((one) => (one.id === id ? { ...one, ...change } : one)),
});

/** Copies a column, with a prompt of its own that can be changed without changing the first one. */
export function withCopy(playground: Playground, id: string): Playground {
  const variant = playground.variants.find((one) => one.id === id);
  const prompt = promptOf(playground, variant);
  if (variant === undefined || prompt === null) return playground;
  const copy = { ...prompt, id: newId(), name: freeName(playground, prompt.name) };
  const added = { ...variant, id: newId(), prompt: copy.id };
  const at = playground.variants.indexOf(variant) + 1;
  return {
    ...playground,
    prompts: [...playground.prompts, copy],
    variants: [...playground.variants.slice(0, at), added, ...playground.variants.slice(at)],
  };
}

/** Moves a column to the front, where the others are compared with it. */
export const withFirst = (playground: Playground, id: string): Playground => ({
  ...playground,
  variants: [...playground.variants.filter((one) => one.id === id), ...playground.variants.filter((one) => one.id !== id)],
});

export const promptOf = (playground: Playground, variant: Variant | undefined): PlayPrompt | null =>
  playground.prompts.find(({ id }) => id === variant?.prompt) ?? null;

/** The data of a prompt's record for a column: what is asked, with the model and its parameters. */
export function dataOf(prompt: PlayPrompt, { model, params }: Variant): Fields {
  const { params: _, ...options } = fieldsIn(prompt.data, "options");
  return { ...prompt.data, options: { ...options, model, params } };
}

/** What the columns are called. Those of one prompt on one model are numbered. */
export function titlesOf(playground: Playground): ReadonlyMap<string, string> {
  const seen = new Map<string, number>();
  return new Map(
    playground.variants.map((variant) => {
      const name = promptOf(playground, variant)?.name ?? "";
      const title = variant.model === "" ? name : `${name} · ${variant.model}`;
      const count = (seen.get(title) ?? 0) + 1;
      seen.set(title, count);
      return [variant.id, count === 1 ? title : `${title} #${count}`];
    }),
  );
}

/** A short text that changes with a value: whether a cell's result belongs to what would run now. */
export function signatureOf(value: unknown): string {
  const text = JSON.stringify(value);
  let [a, b] = [0x811c9dc5, 0x1b873593];
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x85ebca6b) ^ (a >>> 15);
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36);
}
