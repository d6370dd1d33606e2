// Changes of a prompt's messages that keep every field they do not know, and the variables within its texts.
import { Exact } from "../lib/json";

export type PromptFields = Readonly<Record<string, unknown>>;

/** How a prompt names its variables; `none` for a prompt without them. */
export type TemplateFormat = "mustache" | "nunjucks" | "none";

export const isFields = (value: unknown): value is PromptFields =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Exact);

export const ROLES: readonly string[] = ["system", "user", "assistant", "tool", "developer"];

/** Whether a prompt is one text instead of messages. */
export const isCompletion = (prompt: PromptFields): boolean => prompt["type"] === "completion";

export const messagesIn = (prompt: PromptFields): readonly unknown[] =>
  Array.isArray(prompt["messages"]) ? prompt["messages"] : [];

const withMessages = (prompt: PromptFields, messages: readonly unknown[]): PromptFields => ({
  ...prompt,
  type: "chat",
  messages,
});

export const replaced = <Kind>(all: readonly Kind[], index: number, one: Kind): readonly Kind[] =>
  all.map((other, at) => (at === index ? one : other));

export const removed = <Kind>(all: readonly Kind[], index: number): readonly Kind[] => all.filter((_, at) => at !== index);

/** Moves one of a list by some places; the ends of the list are where it stops. */
export function moved<Kind>(all: readonly Kind[], index: number, by: number): readonly Kind[] {
  const to = Math.max(0, Math.min(all.length - 1, index + by));
  const one = all[index];
  if (one === undefined || to === index) return all;
  const rest = removed(all, index);
  return [...rest.slice(0, to), one, ...rest.slice(to)];
}

export const withMessageList = (prompt: PromptFields, change: (all: readonly unknown[]) => readonly unknown[]): PromptFields =>
  withMessages(prompt, change(messagesIn(prompt)));

export const roleOf = (message: unknown): string =>
  isFields(message) && typeof message["role"] === "string" ? message["role"] : "";

/** The role that a further message probably has. */
export function nextRole(messages: readonly unknown[]): string {
  if (messages.length === 0) return "system";
  return roleOf(messages.at(-1)) === "user" ? "assistant" : "user";
}

/** What a message says: one text, parts, or something else. A message without content has an empty text. */
export function contentOf(message: PromptFields): string | readonly unknown[] | null {
  const content = message["content"];
  if (content === undefined || content === null) return "";
  return typeof content === "string" || Array.isArray(content) ? content : null;
}

/** The fields of a message besides its role and its content: calls of tools, for example. */
export function restOf(message: PromptFields, known: readonly string[] = ["role", "content"]): PromptFields {
  return Object.fromEntries(Object.entries(message).filter(([key]) => !known.includes(key)));
}

/** Replaces the fields besides the known ones. The known ones keep their place. */
export function withRest(message: PromptFields, rest: PromptFields, known: readonly string[] = ["role", "content"]): PromptFields {
  const kept = Object.entries(message).filter(([key]) => known.includes(key));
  return Object.fromEntries([...kept, ...Object.entries(restOf(rest, known))]);
}

export type PartKind = "text" | "image";

/** Adds a part to a message. A text before it becomes its first part. */
export function withPart(message: PromptFields, kind: PartKind): PromptFields {
  const content = contentOf(message);
  const before = typeof content === "string" ? (content === "" ? [] : [{ type: "text", text: content }]) : (content ?? []);
  const part = kind === "text" ? { type: "text", text: "" } : { type: "image_url", image_url: { url: "" } };
  return { ...message, content: [...before, part] };
}

/** The text of a part that is nothing but a text, or the address of an image; null for other parts. */
export function partText(part: unknown): { readonly kind: PartKind; readonly text: string } | null {
  if (!isFields(part)) return null;
  if (part["type"] === "text" && typeof part["text"] === "string") return { kind: "text", text: part["text"] };
  const image = part["image_url"];
  if (part["type"] !== "image_url" || !isFields(image) || typeof image["url"] !== "string") return null;
  return { kind: "image", text: image["url"] };
}

export function withPartText(part: unknown, text: string): unknown {
  if (!isFields(part)) return part;
  const image = part["image_url"];
  return part["type"] === "text" ? { ...part, text } : { ...part, image_url: { ...(isFields(image) ? image : {}), url: text } };
}

export const withToolCall = (message: PromptFields): PromptFields => {
  const calls = Array.isArray(message["tool_calls"]) ? message["tool_calls"] : [];
  const call = { id: `call_${calls.length + 1}`, type: "function", function: { name: "", arguments: "{}" } };
  return { ...message, tool_calls: [...calls, call] };
};

const TAGS = /\{\{\{[^{}]*\}\}\}|\{\{[^{}]*\}\}|\{%[^%]*%\}/g;

export interface TemplatePiece {
  readonly text: string;
  readonly isTag: boolean;
}

/** Splits a text at the tags of its template. Joined, the pieces are the text. */
export function templatePieces(text: string, format: TemplateFormat): readonly TemplatePiece[] {
  const pieces: TemplatePiece[] = [];
  let from = 0;
  for (const match of format === "none" ? [] : text.matchAll(TAGS)) {
    if (match[0].startsWith("{%") && format === "mustache") continue;
    if (match.index > from) pieces.push({ text: text.slice(from, match.index), isTag: false });
    pieces.push({ text: match[0], isTag: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), isTag: false });
  return pieces;
}

const PATH = /^[A-Za-z_$][\w$.-]*/;

/** What a tag names, and by how much it opens or closes sections. */
function readTag(tag: string): { readonly names: readonly string[]; readonly local: string; readonly depth: number } {
  const inner = tag.replace(/^\{+%?-?|-?%?\}+$/g, "").trim();
  const named = (text: string): readonly string[] => PATH.exec(text.trim())?.slice(0, 1) ?? [];
  if (tag.startsWith("{%")) {
    const loop = /^for\s+(\w+)\s+in\s+(.+)$/.exec(inner);
    if (loop !== null) return { names: named(loop[2] ?? ""), local: loop[1] ?? "", depth: 0 };
    return { names: named(/^(?:if|elif)\s+(?:not\s+)?(.+)$/.exec(inner)?.[1] ?? ""), local: "", depth: 0 };
  }
  const mark = inner[0] ?? "";
  if ("!>=".includes(mark)) return { names: [], local: "", depth: 0 };
  const depth = mark === "#" || mark === "^" ? 1 : mark === "/" ? -1 : 0;
  return { names: mark === "/" ? [] : named(inner.replace(/^[#^&]/, "")), local: "", depth };
}

/** The names of variables that texts need, in their order. Names within a section are those of its items. */
export function variablesOf(texts: readonly string[], format: TemplateFormat): readonly string[] {
  const found = new Set<string>();
  for (const text of texts) {
    const locals = new Set(["loop"]);
    let depth = 0;
    for (const { text: tag, isTag } of templatePieces(text, format)) {
      if (!isTag) continue;
      const read = readTag(tag);
      for (const name of read.names) if (depth === 0 && !locals.has(name.split(".")[0] ?? "")) found.add(name);
      if (read.local !== "") locals.add(read.local);
      depth = Math.max(0, depth + read.depth);
    }
  }
  return [...found];
}

/** All texts of a prompt in which variables are filled in. */
export function textsOf(prompt: PromptFields): readonly string[] {
  const texts: string[] = [];
  const stack: unknown[] = [prompt["tools"], prompt["content"], ...messagesIn(prompt).toReversed()];
  while (stack.length > 0) {
    const value = stack.pop();
    if (typeof value === "string") texts.push(value);
    else if (Array.isArray(value)) stack.push(...value.toReversed());
    else if (isFields(value)) stack.push(...Object.values(restOf(value, ["role", "type"])).reverse());
  }
  return texts;
}

export const formatOf = (format: unknown): TemplateFormat => (format === "nunjucks" || format === "none" ? format : "mustache");
