// What can be written at a place of a query.
import type { EditorCompletion, EditorOption } from "../../design/EditorTypes";
import { isQuotable } from "../../lib/quoting";
import { dialectOf, lexemesOf } from "./lexer";
import { positionAt, type Position } from "./position";
import type { Field, Named } from "./queries";
import {
  AFTER_SORT,
  CLAUSES,
  FUNCTIONS,
  OPERATORS,
  SHAPES,
  SOURCES,
  SQL_CLAUSES,
  type Source,
  type SourceKind,
  type Word,
} from "./words";

/** What completion reads while somebody types. Each read is remembered for a while. */
export interface Known {
  objects(kind: SourceKind): Promise<readonly Named[]>;
  /** The fields of the source that the text reads. */
  fields(text: string): Promise<readonly Field[]>;
}

const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** A step of a path as it is written: quoted unless it is a plain name. */
const step = (name: string): string => (PLAIN_NAME.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

const quoted = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll("'", "''");

function wordOption(word: Word, boost: number, ending = ""): EditorOption {
  const apply = word.apply ?? (ending === "" ? undefined : `${word.name}${ending}`);
  return { label: word.name, info: word.about, kind: word.kind, boost, ...(apply === undefined ? {} : { apply }) };
}

const functionOption = (word: Word): EditorOption =>
  word.apply === undefined ? { ...wordOption(word, -1, "("), detail: "function" } : { ...wordOption(word, -1), detail: "function" };

const typesText = ({ types }: Field): string => [...new Set(types)].join(" or ") || "null";

/** The fields directly below a path. */
export function fieldOptions(fields: readonly Field[], path: readonly string[]): readonly EditorOption[] {
  const isBelow = ({ path: own }: Field): boolean =>
    own.length === path.length + 1 && path.every((part, index) => part.toLowerCase() === own[index]?.toLowerCase());
  return fields.filter(isBelow).map((field) => {
    const name = field.path.at(-1) ?? "";
    const isPrivate = name.startsWith("_");
    return { label: name, apply: step(name), detail: typesText(field), kind: "name", boost: isPrivate ? 1 : 3 };
  });
}

/** Paths of two steps and more, for typing the last step only. */
function deepOptions(fields: readonly Field[]): readonly EditorOption[] {
  return fields
    .filter(({ path, types }) => path.length > 1 && path.length < 4 && types.some((type) => type !== "object"))
    .map((field) => ({
      label: field.path.map(step).join("."),
      detail: typesText(field),
      kind: "name",
      boost: 2,
    }));
}

function valueOptions(fields: readonly Field[], path: readonly string[]): readonly EditorOption[] {
  const found = fields.find(
    (field) =>
      field.path.join("\n").toLowerCase() === path.join("\n").toLowerCase() ||
      (path.length === 1 && field.path.length > 1 && field.path.at(-1)?.toLowerCase() === path[0]?.toLowerCase()),
  );
  return (found?.values ?? [])
    .map(String)
    .filter((value) => value.length <= 200 && isQuotable(value))
    .map((value, index) => ({
      label: value,
      apply: `${quoted(value)}'`,
      detail: "value",
      kind: "string",
      boost: -index,
    }));
}

const objectOption = (object: Named, apply: string, detail: string): EditorOption => ({
  label: object.name,
  apply,
  detail,
  kind: "string",
});

async function objectOptions(known: Known, source: string): Promise<readonly EditorOption[]> {
  const takes = SOURCES.find(({ name }) => name === source)?.takes ?? "other";
  const objects = await known.objects(takes);
  return objects.map((object) => objectOption(object, `${object.id}'`, takes));
}

/** Sources by the names of their objects, and the bare sources. */
async function sourceOptions(known: Known): Promise<readonly EditorOption[]> {
  const bare = SOURCES.map(({ name, about }): EditorOption => ({
    label: name,
    apply: `${name}('`,
    info: about,
    kind: "function",
    boost: -2,
  }));
  const named = async ({ name, takes }: Source): Promise<readonly EditorOption[]> =>
    (await known.objects(takes)).map((object) => ({
      label: `${name}('${object.name}')`,
      apply: `${name}('${object.id}')`,
      detail: takes,
      kind: "function",
    }));
  const first = SOURCES.filter(({ name }) => ["project_logs", "experiment", "dataset"].includes(name));
  const lists = await Promise.all(first.map((source) => named(source).catch(() => [])));
  return [...lists.flat(), ...bare];
}

function clauseOptions(isSql: boolean, used: ReadonlySet<string>): readonly EditorOption[] {
  const list = isSql ? SQL_CLAUSES : CLAUSES;
  const rest = list.filter(({ name }) => !used.has(name.toLowerCase()));
  return rest.map((word, index) => ({ ...wordOption(word, 4 - index * 0.01, isSql ? " " : ": "), detail: "clause" }));
}

async function expressionOptions(
  known: Known,
  text: string,
  position: Extract<Position, { at: "expression" }>,
  isSql: boolean,
): Promise<readonly EditorOption[]> {
  const fields = await known.fields(text).catch(() => []);
  const own = fieldOptions(fields, position.path);
  if (position.path.length > 0) return own;
  const isSort = position.clause === "sort" || position.clause === "order by";
  return [
    ...own,
    ...deepOptions(fields),
    ...FUNCTIONS.map(functionOption),
    ...(isSort ? AFTER_SORT : []).map((word) => wordOption(word, 5)),
    ...OPERATORS.map((word) => wordOption(word, 0)),
    ...(isSql ? clauseOptions(true, new Set(["select"])).map((option) => ({ ...option, boost: 0 })) : []),
  ];
}

/** Both syntaxes start with other words, so that an empty query offers all of them. */
function startOptions(): readonly EditorOption[] {
  return [
    ...clauseOptions(false, new Set()),
    { label: "SELECT", apply: "SELECT ", info: "Starts a query in SQL.", detail: "SQL", kind: "keyword", boost: 3 },
  ];
}

export type ForcedSyntax = "auto" | "sql" | "btql";

async function optionsAt(
  known: Known,
  text: string,
  position: Position,
  syntax: ForcedSyntax,
): Promise<readonly EditorOption[]> {
  const isSql = syntax === "auto" ? dialectOf(lexemesOf(text)) === "sql" : syntax === "sql";
  switch (position.at) {
    case "nothing":
      return [];
    case "clause":
      if (syntax === "auto" && position.used.size === 0) return startOptions();
      return clauseOptions(isSql, position.used);
    case "source":
      return sourceOptions(known);
    case "object":
      return objectOptions(known, position.source);
    case "shape":
      return SHAPES.map((word, index) => wordOption(word, -index));
    case "expression":
      return expressionOptions(known, text, position, isSql);
    case "value":
      return valueOptions(await known.fields(text).catch(() => []), position.path);
  }
}

/** What can be written at an offset; null for nothing. */
export async function completionAt(
  known: Known,
  text: string,
  at: number,
  syntax: ForcedSyntax,
): Promise<EditorCompletion | null> {
  const position = positionAt(text, at);
  if (position.at === "nothing") return null;
  const options = await optionsAt(known, text, position, syntax);
  if (options.length === 0) return null;
  return { from: position.from, options, ...("to" in position ? { to: position.to } : {}) };
}
