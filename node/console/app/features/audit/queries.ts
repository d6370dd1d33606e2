// The requests of the audit log, by name.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import {
  readAuditCounts,
  readAuditEntryAt,
  readAuditPage,
  readNames,
  type AuditFilter,
  type AuditScope,
} from "../../api/audit";

const FIRST = "";

export const entriesQuery = (scope: AuditScope, filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ["audit", scope.organizationId, "entries", filter],
    queryFn: ({ pageParam, signal }) => readAuditPage(scope, filter, pageParam, signal),
    initialPageParam: FIRST,
    getNextPageParam: (page) => page.cursor,
  });

/** The entry of a number, which the list may not hold. */
export const entryQuery = (scope: AuditScope, sequence: number) =>
  queryOptions({
    queryKey: ["audit", scope.organizationId, "entry", sequence],
    queryFn: ({ signal }) => readAuditEntryAt(scope, sequence, signal),
  });

export const countsQuery = (scope: AuditScope) =>
  queryOptions({
    queryKey: ["audit", scope.organizationId, "counts"],
    queryFn: ({ signal }) => readAuditCounts(scope, signal),
  });

export const namesQuery = (organization: string) =>
  queryOptions({
    queryKey: ["names", organization],
    queryFn: ({ signal }) => readNames(organization, signal),
    staleTime: 60_000,
  });
