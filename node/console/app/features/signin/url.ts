// The address of the sign-in screen: where to go afterwards.
import { screenAddress, textParameter, type Codec } from "../../lib/address";
import { safeNext } from "../../lib/next";

export interface SignInState {
  /** A safe address of the console. */
  readonly next: string;
}

const START = "/app";

export const signInUrl: Codec<SignInState> = {
  read: ({ segments, rawFirst, query }) =>
    segments.length === 1 && rawFirst === "sign-in" ? { next: safeNext(textParameter(query, "next", START)) } : null,
  write: ({ next }) => screenAddress(["sign-in"], [["next", safeNext(next), START]]),
};
