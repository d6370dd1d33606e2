// The requests of a span's detail besides the span itself.
import { queryOptions } from "@tanstack/react-query";
import { readAttachment } from "../../../api/attachments";
import { readHistory, readScoreDefinitions, readUserNames } from "../../../api/history";
import type { SpanPlace } from "../../../api/spans";
import type { Media } from "../messages/forms";

export const historyQuery = (place: SpanPlace, id: string) =>
  queryOptions({
    queryKey: ["history", place.organization, place.source.kind, place.source.id, place.version, id] as const,
    queryFn: ({ signal }) => readHistory(place, id, signal),
    staleTime: 30_000,
  });

export const userNamesQuery = (organization: string) =>
  queryOptions({
    queryKey: ["user-names", organization] as const,
    queryFn: ({ signal }) => readUserNames(organization, signal),
    staleTime: 600_000,
  });

export const scoreDefinitionsQuery = (organization: string, projectId: string) =>
  queryOptions({
    queryKey: ["score-definitions", organization, projectId] as const,
    queryFn: ({ signal }) => readScoreDefinitions(organization, projectId, signal),
    staleTime: 60_000,
    enabled: projectId !== "",
  });

/** Tickets are good for a quarter of an hour, so that they are asked for again before. */
export const attachmentQuery = (organization: string, media: Media) =>
  queryOptions({
    queryKey: ["attachment", organization, media.key] as const,
    queryFn: ({ signal }) => readAttachment(organization, media, signal),
    staleTime: 10 * 60_000,
    gcTime: 10 * 60_000,
    enabled: media.key !== "",
  });
