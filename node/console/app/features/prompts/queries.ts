// The requests of the screens of prompts and functions, by name.
import { queryOptions } from "@tanstack/react-query";
import { readUserNames } from "../../api/history";
import { readModels } from "../../api/playground";
import {
  countPromptUses,
  countPromptVersions,
  readAllPinned,
  readEnvironments,
  readPinned,
  readPromptNamed,
  readPromptRecords,
  readPromptVersion,
  readPromptVersions,
} from "../../api/prompts";
import { cache } from "../../api/queries";

/** Where records are. */
export interface ProjectPlace {
  readonly organization: string;
  readonly project: string;
  readonly projectId: string;
}

/** What the keys of all these requests begin with. */
const keyOf = ({ organization, projectId }: ProjectPlace, ...rest: readonly unknown[]) =>
  ["prompt-records", organization, projectId, ...rest] as const;

export const recordsQuery = (place: ProjectPlace) =>
  queryOptions({
    queryKey: keyOf(place, "list"),
    queryFn: ({ signal }) => readPromptRecords(place.organization, place.projectId, signal),
  });

export const countsQuery = (place: ProjectPlace, ids: readonly string[]) =>
  queryOptions({
    queryKey: keyOf(place, "counts", ids),
    queryFn: ({ signal }) => countPromptVersions(place.organization, place.projectId, ids, signal),
    placeholderData: (before) => before,
  });

export const allPinnedQuery = (place: ProjectPlace, ids: readonly string[]) =>
  queryOptions({
    queryKey: keyOf(place, "all-pinned", ids),
    queryFn: ({ signal }) => readAllPinned(place.organization, ids, signal),
    placeholderData: (before) => before,
  });

const USES_MS = 7 * 86_400_000;

export const usesQuery = (place: ProjectPlace) =>
  queryOptions({
    queryKey: keyOf(place, "uses"),
    queryFn: ({ signal }) => countPromptUses(place.organization, place.projectId, new Date(Date.now() - USES_MS), signal),
    staleTime: 60_000,
  });

export const namedQuery = (place: ProjectPlace, slug: string) =>
  queryOptions({
    queryKey: keyOf(place, "named", slug),
    queryFn: ({ signal }) => readPromptNamed(place.organization, place.projectId, slug, signal),
  });

export const versionsQuery = (place: ProjectPlace, id: string) =>
  queryOptions({
    queryKey: keyOf(place, "versions", id),
    queryFn: ({ signal }) => readPromptVersions(place.organization, place.projectId, id, signal),
  });

/** A version never changes. */
export const versionQuery = (place: ProjectPlace, id: string, version: string) =>
  queryOptions({
    queryKey: ["prompt-version", place.organization, id, version],
    queryFn: ({ signal }) => readPromptVersion(place.organization, id, version, signal),
    staleTime: Infinity,
  });

export const pinnedQuery = (place: ProjectPlace, id: string) =>
  queryOptions({
    queryKey: keyOf(place, "pinned", id),
    queryFn: ({ signal }) => readPinned(place.organization, id, signal),
  });

export const environmentsQuery = (organization: string) =>
  queryOptions({
    queryKey: ["environments", organization],
    queryFn: ({ signal }) => readEnvironments(organization, signal),
  });

export const modelsQuery = ({ organization, projectId }: ProjectPlace) =>
  queryOptions({
    queryKey: ["models", organization, projectId],
    queryFn: ({ signal }) => readModels(organization, projectId, signal),
    staleTime: 300_000,
  });

export const userNamesQuery = (organization: string) =>
  queryOptions({
    queryKey: ["user-names", organization],
    queryFn: ({ signal }) => readUserNames(organization, signal),
    staleTime: 300_000,
  });

/** Reads everything again that tells of the records of a project. */
export async function refresh(place: ProjectPlace): Promise<void> {
  await cache.invalidateQueries({ queryKey: keyOf(place) });
}
