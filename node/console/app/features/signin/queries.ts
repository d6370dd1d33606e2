// The requests of the sign-in screen.
import { call } from "../../api/client";
import { ApiError, problemOf } from "../../lib/errors";
import { readSession, type Session } from "../../api/schema";

/** Signs in with a key, which nothing keeps. */
export const signIn = async (key: string): Promise<Session> =>
  readSession(await call("POST", "/console/session", { key, isWithoutGate: true }));

/** The address that leads to the identity provider and from there to `next`. */
export const providerAddress = (next: string): string => `/console/login?next=${encodeURIComponent(next)}`;

/** Says why a key did not sign in. Unknown and revoked keys are told apart by nobody. */
export function refusal(error: unknown): string {
  if (error instanceof ApiError && error.status === 401) return "This key is not known, or it was revoked.";
  const problem = problemOf(error, 0);
  if (error instanceof ApiError && error.retryAfter !== null) {
    return `${problem.text} Try again in ${error.retryAfter} s.`;
  }
  return problem.text;
}
