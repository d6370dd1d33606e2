// The lists of prompts and of functions: which records are in which, in what order, and what is said of each.
import type { Pinned, PromptRecord } from "../../api/prompts";
import { momentOf } from "../../lib/version";
import { modelIn } from "./draft";
import type { Kind } from "./url";

export interface Listed {
  readonly record: PromptRecord;
  readonly model: string;
  readonly changed: Date | null;
  /** Null while it is not known, as with the others. */
  readonly versions: number | null;
  readonly pinned: readonly Pinned[] | null;
  readonly uses: number | null;
}

/** Prompts for answers are prompts; judges and everything else that runs are functions. */
export const kindOf = ({ kind, type }: PromptRecord): Kind =>
  kind === "prompt" && (type === "" || type === "llm") ? "prompts" : "functions";

export interface ListSources {
  readonly records: readonly PromptRecord[];
  readonly versions: ReadonlyMap<string, number> | undefined;
  readonly pinned: ReadonlyMap<string, readonly Pinned[]> | undefined;
  readonly uses: ReadonlyMap<string, number> | undefined;
}

export const recordsOf = (records: readonly PromptRecord[], kind: Kind): readonly PromptRecord[] =>
  records.filter((record) => kindOf(record) === kind && !record.isInternal);

/** The records of a list, the last changed first, whose name, slug or model contains the filter. */
export function listed({ records, versions, pinned, uses }: ListSources, kind: Kind, filter: string): readonly Listed[] {
  const words = filter.trim().toLowerCase();
  return recordsOf(records, kind)
    .map((record) => ({ record, model: modelIn(record.data) }))
    .filter(({ record, model }) => [record.name, record.slug, record.description, model].some((text) => text.toLowerCase().includes(words)))
    .map(({ record, model }): Listed => ({
      record,
      model,
      changed: momentOf(record.version),
      versions: versions === undefined ? null : (versions.get(record.id) ?? 0),
      pinned: pinned === undefined ? null : (pinned.get(record.id) ?? []),
      uses: uses === undefined ? null : (uses.get(record.id) ?? 0),
    }))
    .sort((one, other) => (other.changed?.getTime() ?? 0) - (one.changed?.getTime() ?? 0) || one.record.name.localeCompare(other.record.name));
}

/** What kind of function a record is, in a word or two. */
export function typeInWords({ type, kind }: PromptRecord): string {
  if (kind === "prompt") return type === "scorer" || type === "classifier" ? `${type} by a model` : type;
  return type === "" ? kind : type;
}

/** Where the code of a function runs, such as `node 20`; empty for other functions. */
export function runtimeOf({ code }: PromptRecord): string {
  const data = code["data"];
  const context = typeof data === "object" && data !== null && "runtime_context" in data ? data.runtime_context : null;
  if (typeof context !== "object" || context === null || !("runtime" in context)) return "";
  return [context.runtime, "version" in context ? context.version : ""].filter((part) => typeof part === "string").join(" ");
}
