// The requests of the sections about credentials, by name.
import { queryOptions } from "@tanstack/react-query";
import {
  deleteCredential,
  readAccounts,
  readKeys,
  readOwnCredential,
  readPeople,
  readTokens,
  type DeletedKind,
} from "../../api/credentials";
import { problemOf } from "../../lib/errors";
import { cache, projectsQuery } from "../../api/queries";
import type { Organization } from "../../api/schema";
import { readFunctions, readModelsOf, readProviders, readVariables, type Secret } from "../../api/secrets";

const key = (organization: string, ...what: readonly string[]) => ["credentials", organization, ...what];

export const keysQuery = (organization: string) =>
  queryOptions({ queryKey: key(organization, "api_key"), queryFn: ({ signal }) => readKeys(organization, signal) });

export const tokensQuery = (organization: string) =>
  queryOptions({ queryKey: key(organization, "service_token"), queryFn: ({ signal }) => readTokens(organization, signal) });

export const accountsQuery = (organization: string) =>
  queryOptions({ queryKey: key(organization, "accounts"), queryFn: ({ signal }) => readAccounts(organization, signal) });

export const peopleQuery = (organization: string) =>
  queryOptions({
    queryKey: key(organization, "people"),
    queryFn: ({ signal }) => readPeople(organization, signal),
    staleTime: 60_000,
  });

export const providersQuery = (organization: string) =>
  queryOptions({ queryKey: key(organization, "ai_secret"), queryFn: ({ signal }) => readProviders(organization, signal) });

export const variablesQuery = (organization: string) =>
  queryOptions({ queryKey: key(organization, "env_var"), queryFn: ({ signal }) => readVariables(organization, signal) });

export const functionsQuery = (organization: string) =>
  queryOptions({ queryKey: key(organization, "functions"), queryFn: ({ signal }) => readFunctions(organization, signal) });

export const modelsQuery = (organization: string, secret: Secret) =>
  queryOptions({
    queryKey: key(organization, "models", secret.id),
    queryFn: ({ signal }) => readModelsOf(organization, secret, signal),
    staleTime: 60_000,
  });

/** The key that this page was opened with. Whoever may not read the sign-ins learns nothing. */
export const ownCredentialQuery = ({ id, name }: Organization) =>
  queryOptions({
    queryKey: key(name, "own"),
    queryFn: ({ signal }) => readOwnCredential(name, id, signal),
    staleTime: Infinity,
  });

export { projectsQuery };

/** Reads the lists of credentials again, after a change. */
export const readAgain = (organization: string): Promise<void> => cache.invalidateQueries({ queryKey: key(organization) });

/** Deletes a credential, and returns what went wrong in a sentence, or null. */
export async function deleted(organization: string, kind: DeletedKind, id: string): Promise<string | null> {
  try {
    await deleteCredential(organization, kind, id);
  } catch (error) {
    return problemOf(error, 0).text;
  }
  void readAgain(organization);
  return null;
}
