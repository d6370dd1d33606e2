// What the editor knows of the organization's data: objects by name, and the fields of the source that is read.
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { cache, projectsQuery } from "../../api/queries";
import type { EditorHint } from "../../design/EditorTypes";
import type { Known } from "./completion";
import { lexemesOf, unquoted } from "./lexer";
import { sourceOf } from "./position";
import { fieldsQuery, objectsQuery, type Field, type Named } from "./queries";
import type { Owner } from "./saved";
import { SOURCE_NAMES, SOURCES, type SourceKind } from "./words";

async function objectsOf(owner: Owner, kind: SourceKind): Promise<readonly Named[]> {
  switch (kind) {
    case "project": {
      const { projects } = await cache.fetchQuery(projectsQuery(owner.name));
      return projects.map(({ id, name }) => ({ id, name, project: "" }));
    }
    case "experiment":
    case "dataset":
      return cache.fetchQuery(objectsQuery(owner.name, kind));
    case "organization":
      return [{ id: owner.id, name: owner.name, project: "" }];
    case "other":
      return [];
  }
}

/** Reads what completion offers. */
export function useKnown(owner: Owner): Known {
  return useMemo(
    () => ({
      objects: (kind) => objectsOf(owner, kind),
      fields: async (text) => {
        const source = sourceOf(text);
        return source === null ? [] : cache.fetchQuery(fieldsQuery(owner.name, source.name, source.ids));
      },
    }),
    [owner.id, owner.name],
  );
}

/** The fields of the source that a text reads, as far as they were read already. */
export function knownFields(owner: Owner, text: string): readonly Field[] {
  const source = sourceOf(text);
  if (source === null) return [];
  return cache.getQueryData(fieldsQuery(owner.name, source.name, source.ids).queryKey) ?? [];
}

interface Argument {
  readonly id: string;
  readonly at: number;
  readonly kind: SourceKind;
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The ids that are arguments of sources, with the offset after each. */
export function argumentsOf(text: string): readonly Argument[] {
  const found: Argument[] = [];
  let kind: SourceKind = "other";
  for (const lexeme of lexemesOf(text)) {
    const name = lexeme.text.toLowerCase();
    if (lexeme.kind === "word" && SOURCE_NAMES.has(name)) kind = SOURCES.find((one) => one.name === name)?.takes ?? "other";
    else if (lexeme.text === ")") kind = "other";
    else if (lexeme.kind === "string" && kind !== "other" && UUID.test(unquoted(lexeme))) {
      found.push({ id: unquoted(lexeme), at: lexeme.to, kind });
    }
  }
  return found;
}

/** The names of the objects whose ids stand in the text, each after its id. */
export function useHints(owner: Owner, text: string): readonly EditorHint[] {
  const found = useMemo(() => argumentsOf(text), [text]);
  const has = (kind: SourceKind): boolean => found.some((one) => one.kind === kind);
  const projects = useQuery({ ...projectsQuery(owner.name), enabled: has("project") }).data?.projects;
  const experiments = useQuery({ ...objectsQuery(owner.name, "experiment"), enabled: has("experiment") }).data;
  const datasets = useQuery({ ...objectsQuery(owner.name, "dataset"), enabled: has("dataset") }).data;
  return useMemo(() => {
    const objects = [...(projects ?? []), ...(experiments ?? []), ...(datasets ?? [])];
    const names = new Map(objects.map(({ id, name }) => [id, name]));
    return found.flatMap(({ id, at }) => {
      const name = names.get(id.toLowerCase());
      return name === undefined ? [] : [{ at, text: name }];
    });
  }, [found, projects, experiments, datasets]);
}
