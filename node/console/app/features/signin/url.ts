// The address of the sign-in screen: where to go afterwards, and why the sign-in before failed.
import { choiceParameter, screenAddress, textParameter, type Codec } from "../../lib/address";
import { safeNext } from "../../lib/next";

/** Why a sign-in with the provider or a link failed, as the server names it. */
export const PROBLEMS = ["", "unavailable", "denied", "not_here", "used_link"] as const;

export interface SignInState {
  /** A safe address of the console. */
  readonly next: string;
  readonly problem: (typeof PROBLEMS)[number];
}

const START = "/app";

export const signInUrl: Codec<SignInState> = {
  read: ({ segments, rawFirst, query }) =>
    segments.length === 1 && rawFirst === "sign-in"
      ? { next: safeNext(textParameter(query, "next", START)), problem: choiceParameter(query, "problem", PROBLEMS, "") }
      : null,
  write: ({ next, problem }) =>
    screenAddress(["sign-in"], [
      ["next", safeNext(next), START],
      ["problem", problem, ""],
    ]),
};
